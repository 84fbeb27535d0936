/* SPDX-License-Identifier: MIT
 *
 * What is counted in the measured window beside the streams: transactions, page fault stalls,
 * what the machine had to do.
 */
#include "harness/workload/ese/ese_test_impl.h"

static void sample_server(struct ese_test_server *server, double seconds)
{
	struct ese_server_counts counts;
	double per_s;

	ese_server_counts(server->server, &counts);
	per_s = (double)(counts.stalls - server->sampled_stalls) / seconds;
	server->sampled_stalls = counts.stalls;
	if (server->samples == 0 || per_s < server->stalls_min_per_s)
		server->stalls_min_per_s = per_s;
	server->stalls_max_per_s = MAX_OF(server->stalls_max_per_s, per_s);
	server->samples_with_stalls += per_s > 0;
	server->samples++;
}

static void sample(struct ese_test *test)
{
	uint64_t now_ns = loop_now_ns(test->loop);
	double seconds = (double)(now_ns - test->sampled_ns) / (double)NS_PER_S;

	/* What is left at the end is no sample when it is short. */
	if (now_ns == test->sampled_ns ||
	    (test->servers[0].samples && now_ns - test->sampled_ns < ESE_SAMPLE_NS / 2))
		return;
	test->sampled_ns = now_ns;
	for (unsigned s = 0; s < test->server_count; s++)
		sample_server(&test->servers[s], seconds);
	ese_host_counters_sample(&test->host_counters);
}

static void sample_due(void *arg)
{
	struct ese_test *test = arg;

	sample(test);
	loop_timer_set(test->loop, &test->sample_timer,
		       test->sample_timer.deadline_ns + ESE_SAMPLE_NS);
}

void ese_test_window_begin(struct ese_test *test)
{
	test->in_window = true;
	test->window_begin_ns = test->sampled_ns = loop_now_ns(test->loop);
	ese_host_counters_begin(&test->host_counters, test->loop);
	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];

		ese_server_counts(server->server, &server->begun);
		server->sampled_stalls = server->begun.stalls;
		for (unsigned i = 0; i < server->db_count; i++)
			server->dbs[i].transactions = ese_server_transactions(server->server, i);
	}
	loop_timer_init(&test->sample_timer, sample_due, test);
	loop_timer_set(test->loop, &test->sample_timer, test->sampled_ns + ESE_SAMPLE_NS);
}

static void end_database(struct ese_test_server *server, unsigned index)
{
	struct ese_test_db *db = &server->dbs[index];
	const struct stream_counters *log = &db->streams[ESE_LOG_WRITE].total;

	db->transactions = ese_server_transactions(server->server, index) - db->transactions;
	db->read_ns = hist_mean_ns(&db->streams[ESE_DB_READ].total.response);
	db->log_write_ns = hist_mean_ns(&log->response);
	db->has_log_writes = log->ios > 0;
	server->ios += db->streams[ESE_DB_READ].total.ios + db->streams[ESE_DB_WRITE].total.ios;
}

void ese_test_window_end(struct ese_test *test)
{
	if (!test->in_window)
		return;
	test->in_window = false;
	loop_timer_cancel(test->loop, &test->sample_timer);
	sample(test);
	test->window_end_ns = loop_now_ns(test->loop);
	for (unsigned s = 0; s < test->server_count; s++) {
		struct ese_test_server *server = &test->servers[s];

		ese_server_counts(server->server, &server->ended);
		server->described = ese_server_describe(server->server);
		for (unsigned i = 0; i < server->db_count; i++)
			end_database(server, i);
	}
	ese_testlog_add(test->log, NULL, "Performance logging has ended.");
}
