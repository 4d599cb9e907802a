/* STEM_test.c: every function of STEM.h on stored inputs, compared with stored results.
 *
 * Prints a line for each test; the exit status is 1 if one fails. Written by `i build`.
ON_DEVICE *
 * An input repeats a short table: its element i is values[(start + i) % stored]. Results come from the reference
 * evaluator of the compiler; of a long output every step-th element is stored. Integers and truth values must be
 * equal; a float may be off by relative * (its size + scale), where scale says how strongly roundings move it.
 */

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "STEM.h"
