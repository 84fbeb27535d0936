/* SPDX-License-Identifier: MIT
 *
 * Each format: what its lines mean, and which are malformed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka needs these before it */
#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/unit/trace/trace_text.h"

struct sample {
	const char *text, *expected;
};

static void compare(const struct sample *samples, size_t count)
{
	char out[8192];

	for (size_t i = 0; i < count; i++) {
		trace_text(samples[i].text, out, sizeof out);
		assert_string_equal(out, samples[i].expected);
	}
}

#define V3 "fio version 3 iolog\n"
#define V2 "fio version 2 iolog\n"

static void test_fio(void **state)
{
	static const struct sample samples[] = {
	    {V3 "15 /dev/sdb add\n119 /dev/sdb open\n126 /dev/sdb read 0 4096\n"
		"148 /dev/sdb write 45056 512\n40226 /dev/sdb sync 57344 0\n"
		"50000 /dev/sdc trim 4096 8192\n60156 /dev/sdb close\n",
	     "126000+? /dev/sdb read 0+4096\n148000+? /dev/sdb write 45056+512\n"
	     "40226000+? /dev/sdb flush 0+0\n50000000+? /dev/sdc trim 4096+8192\n"},
	    /* FUA as we record it; a datasync later, or of another file, is a flush */
	    {V3 "1 a write 0 512\n1 a datasync 0 0\n2 a write 512 512\n3 a datasync 512 0\n"
		"4 a write 0 512\n4 b datasync 0 0\n5 a write 0 1024",
	     "1000+? a write 0+512 fua\n2000+? a write 512+512\n3000+? a flush 0+0\n"
	     "4000+? a write 0+512\n4000+? b flush 0+0\n5000+? a write 0+1024\n"},
	    {V2 "f add\nf open\nf write 0 4096\nf wait 300 0\nf read 4096 512\nf wait 50 0\n"
		"f read 0 512\nf close\n",
	     "0+? f write 0+4096\n300000+? f read 4096+512\n350000+? f read 0+512\n"},
	    {V3 "1 a frobnicate 0 512\n2 a read 0\nx a read 0 512\n4 a read -1 512\n5 a read 0 0\n"
		"6 a wait 5 0\n7 a read 0 512 9\n8 a steal\n9 a write 0 0\n10 a read 0 512\n",
	     "10000+? a read 0+512\nbad 9, late 0\n2: the action is 'frobnicate'\n"
	     "3: 4 fields; an I/O has 5, a file's add, open and close 3\n"
	     "4: the time is 'x', not a number\n5: the offset is '-1', not a number\n"
	     "6: the size is 0\n7: version 3 has no 'wait'\n"
	     "8: 6 fields; an I/O has 5, a file's add, open and close 3\n"
	     "9: the action is 'steal'\n10: the size is 0"},
	    {"fio version 4 iolog\n", "bad 1, late 0\n1: 'fio version 4 iolog' is not 'fio version "
				      "2 iolog' or 'fio version 3 "
				      "iolog'"},
	};

	compare(samples, ARRAY_SIZE(samples));
}

#define E(time, action, rwbs, rest) \
	"  8,0    3        1     " time "   697  " action " " rwbs " " rest "\n"

static void test_blkparse(void **state)
{
	static const struct sample samples[] = {
	    {E("0.000000001", "Q", "W", "223490 + 8 [kjournald]")
		 E("0.000000010", "D", "W", "223490 + 8 [kjournald]")
		     E("0.000000020", "D", "R", "8 + 16 [cat]")
			 E("0.001000010", "C", "W", "223490 + 8 [0]")
			     E("0.000500020", "C", "R", "8 + 16 [0]"),
	     "10+1000000 8,0 write 114426880+4096\n20+500000 8,0 read 4096+8192\n"},
	    /* flush, FUA, discard; a request of its own, messages and sums are no I/O */
	    {E("1.0", "D", "FWFS", "8 + 8 [x]") E("1.1", "D", "F", "[x]")
		 E("1.2", "C", "F", "0 [0]") E("1.3", "D", "D", "0 + 2048 [fstrim]")
		     E("1.4", "D", "FWS", "[x]") E("1.5", "D", "R",
						   "36 (12 00 00 00 24 00 ..) [sg_inq]")
			 E("1.6", "m", "N", "cfq697S / add_to_rr")
			     E("1.7", "D", "N", "0 [x]") "CPU0 (sda):\n"
							 " Reads Queued:           0,        "
							 "0KiB\nSkips: 0 forward (0 -   0.0%)\n",
	     "1000000000+? 8,0 flush 0+0\n1000000000+? 8,0 write 4096+4096 fua\n"
	     "1100000000+100000000 8,0 flush 0+0\n1300000000+? 8,0 trim 0+1048576\n"
	     "1400000000+? 8,0 flush 0+0\n"},
	    /* requeued: only the second D counts; a completion covers what was merged into one */
	    {E("1.0", "D", "W", "8 + 8 [x]") E("1.1", "R", "W", "8 + 8 [x]")
		 E("1.2", "D", "W", "8 + 8 [x]") E("1.3", "D", "W", "16 + 8 [x]")
		     E("1.5", "C", "W", "8 + 16 [0]"),
	     "1200000000+300000000 8,0 write 4096+4096\n1300000000+200000000 8,0 write "
	     "8192+4096\n"},
	    /* the clocks of two processors */
	    {E("2.0", "D", "R", "8 + 8 [x]") E("1.9", "C", "R", "8 + 8 [0]"),
	     "2000000000+0 8,0 read 4096+4096\n"},
	    {E("1.0", "D", "W", "8 + x [y]")
		 E("1,5", "D", "W", "8 + 8 [y]") "hello world\nsda 3 1 0.0 697 D W 8 + 8\n" E(
		     "1.0", "D", "W", "8 x 8 [y]"),
	     "bad 5, late 0\n1: the number of blocks is 'x', not a number\n"
	     "2: the time is '1,5', not a number\n3: 2 fields, fewer than 6\n"
	     "4: the device is 'sda', not major,minor\n5: no range of sectors follows 'W'"},
	};

	compare(samples, ARRAY_SIZE(samples));
}

static void test_blkparse_queued(void **state)
{
	static const char text[] = E("0.5", "Q", "W", "8 + 8 [a]") E("0.6", "Q", "W", "16 + 8 [a]")
	    E("0.7", "D", "W", "8 + 16 [a]") E("0.9", "C", "W", "8 + 16 [0]");
	char path[64], out[1024];
	const char *files[] = {path};
	struct trace_options options = {.files = files, .file_count = 1, .queued = true};

	trace_text_file(text, strlen(text), false, path);
	trace_text_read(&options, out, sizeof out);
	assert_string_equal(out, "500000000+400000000 8,0 write 4096+4096\n"
				 "600000000+300000000 8,0 write 8192+4096\n");
}

static void test_msr(void **state)
{
	static const struct sample samples[] = {
	    {"128166372003061629,hm,0,Write,7014912,4096,26\n"
	     "128166372003061630,hm,1,read,512,512,100\r\n",
	     "12816637200306162900+2600 hm.0 write 7014912+4096\n"
	     "12816637200306163000+10000 hm.1 read 512+512\n"},
	    {"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime\n5,h,0,Read,0,512,1\n",
	     "500+100 h.0 read 0+512\n"},
	    {"1,h,0,Read,0,512,1\n2,h,0,Read,0,512\n3,h,0,Erase,0,512,1\n4,,0,Read,0,512,1\n"
	     "99999999999999999999,h,0,Read,0,512,1\n6,h,0,Read,0,2147483648,1\n"
	     "7,h,0,Read,18446744073709551615,512,1\n8,h,0,Read,0x10,512,1\n",
	     "100+100 h.0 read 0+512\nbad 7, late 0\n2: 6 fields, not 7\n"
	     "3: the type is 'Erase', not Read or Write\n4: the host has no name\n"
	     "5: the timestamp is '99999999999999999999', too large\n"
	     "6: the size is 2147483648 bytes, more than 1073741824\n"
	     "7: the place is beyond 8 EiB\n8: the offset is '0x10', not a number"},
	};

	compare(samples, ARRAY_SIZE(samples));
}

static void test_spc(void **state)
{
	static const struct sample samples[] = {
	    {"0,20941264,8192,W,0.551706,Alpha/NT\n1, 8, 512, r, 1.5\n2,0,1024,R,2\n",
	     "551706000+? asu0 write 10721927168+8192\n1500000000+? asu1 read 4096+512\n"
	     "2000000000+? asu2 read 0+1024\n"},
	    /* the specification's own slip */
	    {"0,1,512,R,0.1\n0,2 448003,512,R,0.2\n0,1,512,X,0.3\n0,1,512,R,.5\n0,1,512,R,1.\n"
	     "0,1,512,R\n0,1,512,R,1e3\n0,1,512,R,0.4\n",
	     "100000000+? asu0 read 512+512\n400000000+? asu0 read 512+512\nbad 6, late 0\n"
	     "2: the LBA is '2 448003', not a number\n3: the opcode is 'X', not R or W\n"
	     "4: the timestamp is '', not a number\n5: the timestamp is '1.', not seconds\n"
	     "6: 4 fields, fewer than 5\n7: the timestamp is '1e3', not a number"},
	};

	compare(samples, ARRAY_SIZE(samples));
}

static void test_etw(void **state)
{
	static const struct sample samples[] = {
	    /* in the order of ends; begins are what counts */
	    {"BeginHeader\n DiskRead, TimeStamp, Process Name ( PID), ThreadID\nEndHeader\n"
	     "OS Version: 5.2, Trace Size: 1\n"
	     " DiskRead, 100, s.exe (1), 2, 0x1, 0x2000, 0x1000, 90, 2, 0x0, 5, Normal, o, 0x1, "
	     "\"E:\\a.edb\"\n",
	     "bad 1, late 0\n5: the header names no column elapsedtime of DiskRead"},
	    {" DiskRead, 100, s.exe (1), 2, 0x1, 0x2000, 0x1000, 20, 2, 0x0, 5, Normal, o, 0x1, "
	     "\"E:\\a.EDB\"\r\n"
	     "DiskWrite, 120, s.exe (1), 2, 0x1, 512, 1024, 80, 3, 0x0, 5, N, o, 0x1, \"L:\\a, "
	     "b\\E00.log\"\n"
	     "DiskFlush, 130, s.exe (1), 2, 0x1, 30, 3, 0x0, 5, N\nDiskReadInit, 131, s.exe (1), "
	     "2, 0x1\n"
	     "DiskWrite, 140, s.exe (1), 2, 0x1, 512, 1024, 500, 3, 0x0, 5, N, o, 0x1, "
	     "\"L:\\E00.chk\"\n"
	     "DiskRead, 150, s.exe (1), 2, 0x1, 0, 512, 1, 3, 0x0, 5, N, o, 0x1, \"C:\\x.dll\"\n",
	     "0+140000 disk3 write 512+1024 checkpoint\n40000+80000 disk3 write 512+1024 log\n"
	     "80000+20000 disk2 read 8192+4096 database\n100000+30000 disk3 flush 0+0\n"
	     "149000+1000 disk3 read 0+512\n"},
	    /* columns where the header says */
	    {"BeginHeader\nDiskRead, TimeStamp, DiskNum, IOSize, ByteOffset, "
	     "ElapsedTime\nEndHeader\n"
	     "DiskRead, 7, 1, 512, 0x200, 3\n",
	     "4000+3000 disk1 read 512+512\n"},
	    {"DiskRead, 100, s, 2, 0x1, 0x0, 0x1000, 2, 2\nDiskRead, x, s, 2, 0x1, 0x0, 0x1000, 2, "
	     "2\n"
	     "DiskRead, 100, s, 2, 0x1, 0x\n17, 18\nDiskRead, 1, s, 2, 0x1, 0x0, 0x, 2, 2\n",
	     "98000+2000 disk2 read 0+4096\nbad 4, late 0\n2: the time is 'x', not a number\n"
	     "3: 6 fields, the elapsed time is missing\n"
	     "4: the line begins with '17, 18', not with a kind of event\n"
	     "5: the size is '0x', not a number"},
	};

	compare(samples, ARRAY_SIZE(samples));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_fio), cmocka_unit_test(test_blkparse),
	    cmocka_unit_test(test_msr), cmocka_unit_test(test_blkparse_queued),
	    cmocka_unit_test(test_spc), cmocka_unit_test(test_etw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
