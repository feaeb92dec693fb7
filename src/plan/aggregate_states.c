/*
 * aggregate_states.c
 *	  What a partial aggregate hands on: the states of core's aggregates, for those that
 *	  finish them above Gather.
 *
 * The state of sum and avg of bigint is core's own, and so is its form on the way through
 * Gather.  We have a count of values and their sum.  Core's functions make the state of one
 * value, add states, and write them down.  A state of many equal values is made by doubling.
 * So values of the average, and of one more, add up to the sum.
 *
 * src/plan/README.md: Aggregates from an index
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/execnodes.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"

#include "plan/index_aggregate.h"

/* A support function of an aggregate, whose states live in the current memory context. */
static Datum
call_support(PGFunction function, int nargs, const NullableDatum *args)
{
	LOCAL_FCINFO(fcinfo, 2);
	WindowAggState caller = {.ss.ps.type = T_WindowAggState};
	Datum		result;

	caller.curaggcontext = CurrentMemoryContext;
	InitFunctionCallInfoData(*fcinfo, NULL, nargs, InvalidOid, (Node *) &caller, NULL);
	memcpy(fcinfo->args, args, nargs * sizeof(NullableDatum));
	result = function(fcinfo);
	if (fcinfo->isnull)
		elog(ERROR, "a support function of an aggregate returned NULL");
	return result;
}

/* *state has the values of another one, too. */
static void
add_state(NullableDatum *state, Datum other)
{
	NullableDatum args[2] = {*state, {.value = other}};

	state->value = call_support(int8_avg_combine, 2, args);
	state->isnull = false;
}

/* *state has n more values that are "value". */
static void
add_equal(NullableDatum *state, uint64 n, int64 value)
{
	NullableDatum args[2] = {{.isnull = true}, {.value = Int64GetDatum(value)}};
	NullableDatum doubled = {0};

	if (n == 0)
		return;
	doubled.value = call_support(int8_avg_accum, 2, args);
	for (;; n >>= 1)
	{
		if (n & 1)
			add_state(state, doubled.value);
		if (n <= 1)
			return;
		add_state(&doubled, doubled.value);
	}
}

Datum
art_agg_int8_state(uint64 n, int128 sum)
{
	NullableDatum state = {.isnull = true};
	int128		average = sum / (int128) n;
	int128		more = sum % (int128) n;

	if (more < 0)
	{
		more += n;
		average--;
	}
	add_equal(&state, n - (uint64) more, (int64) average);
	add_equal(&state, (uint64) more, (int64) average + 1);
	return call_support(int8_avg_serialize, 1, &state);
}

Datum
art_agg_int4_state(uint64 n, int128 sum)
{
	Datum		state[2] = {Int64GetDatum((int64) n), Int64GetDatum((int64) sum)};

	return PointerGetDatum(construct_array(state, 2, INT8OID, sizeof(int64), FLOAT8PASSBYVAL,
										   TYPALIGN_DOUBLE));
}
