/* SPDX-License-Identifier: MIT
 *
 * Labs that other verbs print.
 */
#ifndef SANLAB_TESTS_UNIT_LAB_ENGINE_LAB_H
#define SANLAB_TESTS_UNIT_LAB_ENGINE_LAB_H

/* Fails unless TEXT, a lab with `engine: ese`, is accepted: the engine's part by the engine, the
 * rest as a lab. */
void engine_lab_accepted(const char *text);

#endif
