/* SPDX-License-Identifier: MIT
 *
 * Tables as text or as HTML.
 */
#include "harness/report/sheet.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/bytes.h"
#include "harness/report/format.h"

enum { COLUMNS_MAX = 16, CELL_BYTES = 300 };

void sheet_begin(struct sheet *sheet, const char *title, const char *columns)
{
	*sheet = (struct sheet){.title = title, .columns = columns, .rows = json_array()};
	sheet->failed = !sheet->rows;
}

void sheet_row(struct sheet *sheet)
{
	if (json_array_append_new(sheet->rows, json_array()) < 0)
		sheet->failed = true;
}

void sheet_cell(struct sheet *sheet, const char *format, ...)
{
	json_t *row = json_array_get(sheet->rows, json_array_size(sheet->rows) - 1);
	char text[CELL_BYTES], *clean;
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	clean = utf8_clean(text);
	if (!clean || json_array_append_new(row, json_string(clean)) < 0)
		sheet->failed = true;
	free(clean);
}

static unsigned columns_of(const char *text)
{
	unsigned columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

/* The Nth name of the head; "" beyond the last.  RET_FIGURES: the column holds figures. */
static void column_name(const struct sheet *sheet, unsigned n, char name[CELL_BYTES],
			bool *ret_figures)
{
	const char *at = sheet->columns ? sheet->columns : "";

	for (; n && *at; n--) {
		at += strcspn(at, "|");
		at += *at == '|';
	}
	*ret_figures = *at == '>';
	at += *ret_figures;
	snprintf(name, CELL_BYTES, "%.*s", (int)strcspn(at, "|"), at);
}

static void put_text_cell(const char *text, unsigned width, bool figures, bool last, FILE *to)
{
	unsigned columns = columns_of(text);

	if (figures && columns < width)
		fprintf(to, "%*s", (int)(width - columns), "");
	for (; *text; text++)
		fputc((unsigned char)*text < 0x20 ? ' ' : *text, to);
	if (!figures && !last && columns < width)
		fprintf(to, "%*s", (int)(width - columns), "");
	fputs(last ? "\n" : "  ", to);
}

/* Column widths are those of the widest cell; there is no other limit. */
static void put_text(const struct sheet *sheet, unsigned columns, FILE *to)
{
	unsigned width[COLUMNS_MAX] = {0};
	char name[CELL_BYTES];
	bool figures;
	json_t *row;
	size_t r;

	for (unsigned c = 0; c < columns; c++) {
		column_name(sheet, c, name, &figures);
		width[c] = columns_of(name);
		json_array_foreach(sheet->rows, r, row)
		{
			const char *text = json_string_value(json_array_get(row, c));

			width[c] = MAX_OF(width[c], columns_of(text ? text : ""));
		}
	}
	for (unsigned c = 0; sheet->columns && c < columns; c++) {
		column_name(sheet, c, name, &figures);
		fputs(c ? "" : "  ", to);
		put_text_cell(name, width[c], figures, c + 1 == columns, to);
	}
	json_array_foreach(sheet->rows, r, row)
	{
		for (unsigned c = 0; c < columns; c++) {
			const char *text = json_string_value(json_array_get(row, c));

			column_name(sheet, c, name, &figures);
			fputs(c ? "" : "  ", to);
			put_text_cell(text ? text : "", width[c], figures, c + 1 == columns, to);
		}
	}
}

static void put_html(const struct sheet *sheet, unsigned columns, FILE *to)
{
	char name[CELL_BYTES];
	bool figures;
	json_t *row;
	size_t r;

	fputs("<table>\n", to);
	for (unsigned c = 0; sheet->columns && c < columns; c++) {
		column_name(sheet, c, name, &figures);
		fprintf(to, "%s<th%s>", c ? "" : "<tr>", figures ? " class=\"n\"" : "");
		escape_xml(to, name);
		fprintf(to, "</th>%s", c + 1 == columns ? "</tr>\n" : "");
	}
	json_array_foreach(sheet->rows, r, row)
	{
		fputs("<tr>", to);
		for (unsigned c = 0; c < columns; c++) {
			column_name(sheet, c, name, &figures);
			fprintf(to, "<td%s>", figures ? " class=\"n\"" : "");
			escape_xml(to, json_string_value(json_array_get(row, c)));
			fputs("</td>", to);
		}
		fputs("</tr>\n", to);
	}
	fputs("</table>\n", to);
}

int sheet_put(struct sheet *sheet, const char *nothing, bool html, FILE *to)
{
	size_t columns = 0, r;
	json_t *row;

	json_array_foreach(sheet->rows, r, row)
	{
		columns = MAX_OF(columns, json_array_size(row));
	}
	columns = MIN_OF(columns, (size_t)COLUMNS_MAX);
	fprintf(to, html ? "<h2>%s</h2>\n" : "\n%s\n", sheet->title);
	if (sheet->failed)
		nothing = "out of memory";
	if (sheet->failed || !columns)
		fprintf(to, html ? "<p>%s</p>\n" : "  %s\n", nothing);
	else if (html)
		put_html(sheet, (unsigned)columns, to);
	else
		put_text(sheet, (unsigned)columns, to);
	json_decref(sheet->rows);
	sheet->rows = NULL;
	return sheet->failed ? -ENOMEM : ferror(to) ? -EIO : 0;
}
