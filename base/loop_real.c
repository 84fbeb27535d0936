/* SPDX-License-Identifier: MIT
 *
 * The real loop: epoll and CLOCK_MONOTONIC.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/loop_impl.h"

enum { BATCH = 128 };

/* After a turn with events the loop looks again for so long before it sleeps: a peer that answers
 * at once (one request in flight) finds it awake, which saves both sides a wake-up.  Where looking
 * has not paid it is left alone for some turns, so that an idle loop and a busy machine lose
 * nothing. */
enum { LOOK_NS = 20000, LOOK_CREDIT_MAX = 16, LOOK_COST = 4, LOOK_AGAIN_TURNS = 256 };

/* loop_gather: a turn that brought events of a part of the descriptors asks for those of the
 * others, up to so many times.  Where asking has not paid it is left alone for some turns. */
enum { GATHER_ROUNDS = 3, GATHER_CREDIT_MAX = 16, GATHER_COST = 2, GATHER_AGAIN_TURNS = 256 };

/* A sleeping processor needs tens of microseconds to come back.  For an exact timer the loop sleeps
 * `lead_ns` less and looks for events until it is due.  The lead follows how late the sleeps
 * end: up by LEAD_UP after one that ended later than that, else down by LEAD_DOWN, which
 * settles where one in twenty is later.  Waits of a few leads are left alone: processors do not
 * sleep deeply for them, and looking never takes more than one LEAD_SHARE of the time. */
enum {
	LEAD_MAX_NS = 150000,
	LEAD_FIRST_NS = 50000,
	LEAD_UP_NS = 1900,
	LEAD_DOWN_NS = 100,
	LEAD_SHARE = 4,
};

struct real_loop {
	struct loop loop;
	int epoll_fd;
	int wake_fd;
	bool slack_set;
	bool no_pwait2; /* the kernel (or a sandbox) does not know epoll_pwait2 */
	/* Events being delivered; loop_watch_del blanks entries of its watch. */
	struct epoll_event batch[BATCH];
	int batch_count, batch_at;
	bool was_busy;	      /* the last wait brought events */
	unsigned look_credit; /* earned by looks that paid */
	unsigned turns;	      /* with events, since the last look */
	unsigned watch_count;
	unsigned gather_credit; /* earned by asking again that paid */
	unsigned gather_turns;	/* since it was last tried */
	uint64_t lead_ns;	/* how much earlier to wake for an exact timer */
};

static struct real_loop *real_of(struct loop *loop)
{
	return container_of(loop, struct real_loop, loop);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t real_now_ns(const struct loop *loop)
{
	(void)loop;
	return clock_ns(CLOCK_MONOTONIC);
}

static uint64_t real_wall_ns(const struct loop *loop)
{
	(void)loop;
	return clock_ns(CLOCK_REALTIME);
}

/* epoll with a timeout in nanoseconds; NULL waits without limit. */
static int wait_events(struct real_loop *self, const struct timespec *timeout)
{
	int n;

	if (!self->no_pwait2) {
		n = epoll_pwait2(self->epoll_fd, self->batch, BATCH, timeout, NULL);
		if (n >= 0 || (errno != ENOSYS && errno != EPERM))
			return n;
		self->no_pwait2 = true;
	}
	/* An epoll descriptor is readable when one of its own is ready. */
	n = ppoll(&(struct pollfd){.fd = self->epoll_fd, .events = POLLIN}, 1, timeout, NULL);
	if (n <= 0)
		return n;
	return epoll_wait(self->epoll_fd, self->batch, BATCH, 0);
}

/* A look at what comes next, without sleeping; 0: nothing came. */
static int look_for_events(struct real_loop *self, uint64_t until_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + LOOK_NS;
	int n;

	if (!self->was_busy || until_ns < end_ns)
		return 0;
	if (self->look_credit == 0 && ++self->turns < LOOK_AGAIN_TURNS)
		return 0;
	self->turns = 0;
	do
		n = epoll_wait(self->epoll_fd, self->batch, BATCH, 0);
	while (n == 0 && clock_ns(CLOCK_MONOTONIC) < end_ns);
	if (n > 0)
		self->look_credit = MIN_OF(self->look_credit + 1, LOOK_CREDIT_MAX);
	else
		self->look_credit -= MIN_OF(self->look_credit, LOOK_COST);
	return n > 0 ? n : 0;
}

static int sleep_until(struct real_loop *self, uint64_t until_ns)
{
	struct timespec timeout = {0};
	uint64_t now_ns;

	if (until_ns == LOOP_NEVER)
		return wait_events(self, NULL);
	now_ns = until_ns ? clock_ns(CLOCK_MONOTONIC) : 0;
	if (until_ns > now_ns) {
		timeout.tv_sec = (time_t)((until_ns - now_ns) / NS_PER_S);
		timeout.tv_nsec = (long)((until_ns - now_ns) % NS_PER_S);
	}
	return wait_events(self, &timeout);
}

/* For an exact timer: a sleep that ends early, then a look until UNTIL_NS. */
static int sleep_exactly(struct real_loop *self, uint64_t until_ns)
{
	static const struct timespec no_time;
	uint64_t wake_ns = until_ns - self->lead_ns;
	int n;

	if (clock_ns(CLOCK_MONOTONIC) + LEAD_SHARE * self->lead_ns > until_ns)
		return sleep_until(self, until_ns);
	n = sleep_until(self, wake_ns);
	if (n != 0)
		return n;
	if (clock_ns(CLOCK_MONOTONIC) > until_ns)
		self->lead_ns = MIN_OF(self->lead_ns + LEAD_UP_NS, LEAD_MAX_NS);
	else
		self->lead_ns -= MIN_OF(self->lead_ns, LEAD_DOWN_NS);
	while (n == 0 && clock_ns(CLOCK_MONOTONIC) < until_ns)
		n = wait_events(self, &no_time);
	return n;
}

static void drain_wake_fd(struct real_loop *self)
{
	uint64_t count;

	if (read(self->wake_fd, &count, sizeof count) < 0) {
		/* Nonblocking: another turn has taken it. */
	}
}

static void deliver(struct real_loop *self)
{
	for (self->batch_at = 0; self->batch_at < self->batch_count; self->batch_at++) {
		struct epoll_event *event = &self->batch[self->batch_at];
		struct loop_watch *watch = event->data.ptr;
		uint32_t ready;

		if (!watch)
			continue;
		if (event->data.ptr == self) {
			drain_wake_fd(self);
			continue;
		}
		/* An earlier callback of this batch may have lost interest in a direction. */
		ready = event->events & (watch->events | EPOLLERR | EPOLLHUP);
		if (ready)
			watch->fn(watch->arg, ready);
	}
	self->batch_count = 0;
}

static int events_now(struct real_loop *self)
{

	return epoll_wait(self->epoll_fd, self->batch, BATCH, 0);
}

static void gather(struct real_loop *self, unsigned seen)
{
	if (!self->loop.gathers || seen == 0 || seen >= self->watch_count)
		return;
	if (self->gather_credit == 0 && ++self->gather_turns < GATHER_AGAIN_TURNS)
		return;
	self->gather_turns = 0;
	for (unsigned round = 0; round < GATHER_ROUNDS && seen < self->watch_count; round++) {
		int n = self->loop.stopping ? 0 : events_now(self);

		if (n <= 0) {
			if (round == 0)
				self->gather_credit -= MIN_OF(self->gather_credit, GATHER_COST);
			break;
		}
		self->gather_credit = MIN_OF(self->gather_credit + 1, GATHER_CREDIT_MAX);
		seen += (unsigned)n;
		self->batch_count = n;
		deliver(self);
	}
}

static int real_wait(struct loop *loop, uint64_t until_ns)
{
	struct real_loop *self = real_of(loop);
	int n;

	if (!self->slack_set) {
		/* The default slack of 50 us is half the service time of a fast drive. */
		prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
		self->slack_set = true;
	}
	n = look_for_events(self, until_ns);
	if (n == 0)
		n = loop->exact ? sleep_exactly(self, until_ns) : sleep_until(self, until_ns);
	self->was_busy = n > 0;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	self->batch_count = n;
	deliver(self);
	gather(self, (unsigned)n);
	return 0;
}

static void real_wake(struct loop *loop)
{
	int saved_errno = errno; /* this may be a signal handler */
	uint64_t one = 1;

	if (write(real_of(loop)->wake_fd, &one, sizeof one) < 0) {
		/* Full means it is readable already. */
	}
	errno = saved_errno;
}

static int real_watch_add(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(real_of(loop)->epoll_fd, EPOLL_CTL_ADD, watch->fd, &event) < 0)
		return -errno;
	watch->events = events;
	watch->active = true;
	real_of(loop)->watch_count++;
	return 0;
}

static int real_watch_set(struct loop *loop, struct loop_watch *watch, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = watch};

	if (epoll_ctl(real_of(loop)->epoll_fd, EPOLL_CTL_MOD, watch->fd, &event) < 0)
		return -errno;
	watch->events = events;
	return 0;
}

static void real_watch_del(struct loop *loop, struct loop_watch *watch)
{
	struct real_loop *self = real_of(loop);

	/* Fails when the descriptor is closed already, which has removed it as well. */
	epoll_ctl(self->epoll_fd, EPOLL_CTL_DEL, watch->fd, NULL);
	watch->active = false;
	self->watch_count--;
	for (int i = self->batch_at + 1; i < self->batch_count; i++)
		if (self->batch[i].data.ptr == watch)
			self->batch[i].data.ptr = NULL;
}

static void real_free(struct loop *loop)
{
	struct real_loop *self = real_of(loop);

	if (self->wake_fd >= 0)
		close(self->wake_fd);
	if (self->epoll_fd >= 0)
		close(self->epoll_fd);
	loop_done(loop);
	free(self);
}

static const struct loop_ops real_ops = {
    .now_ns = real_now_ns,
    .wall_ns = real_wall_ns,
    .wait = real_wait,
    .wake = real_wake,
    .watch_add = real_watch_add,
    .watch_set = real_watch_set,
    .watch_del = real_watch_del,
    .free = real_free,
    .is_virtual = false,
};

static int real_open(struct real_loop *self)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = self};

	self->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (self->epoll_fd < 0)
		return -errno;
	self->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (self->wake_fd < 0)
		return -errno;
	if (epoll_ctl(self->epoll_fd, EPOLL_CTL_ADD, self->wake_fd, &event) < 0)
		return -errno;
	return 0;
}

int loop_new_real(struct loop **ret_loop)
{
	struct real_loop *self = calloc(1, sizeof *self);
	int rc;

	if (!self)
		return -ENOMEM;
	self->epoll_fd = self->wake_fd = -1;
	self->gather_credit = GATHER_CREDIT_MAX;
	self->lead_ns = LEAD_FIRST_NS;
	rc = loop_init(&self->loop, &real_ops);
	if (rc < 0) {
		free(self);
		return rc;
	}
	rc = real_open(self);
	if (rc < 0) {
		real_free(&self->loop);
		return rc;
	}
	*ret_loop = &self->loop;
	return 0;
}
