import { sql } from 'kysely';

/**
 * SQL, to be joined laterally: the entries of a row `p` of change_position, packed or not (0001-baseline.sql has the layout), as columns
 * `at` (-1: none), `sequence` and `number`, from 1 on. A row has as many positions as fingerprints.
 */
export const entriesOfRow = sql.raw<unknown>(`(
  select plain.at, plain.sequence, plain.number
    from unnest(p.ats, p.sequences) with ordinality as plain (at, sequence, number)
  union all
  select case when packed.high < 0 then -1 else p.oldest + packed.high * 4294967296 + packed.low end,
         case when packed.high < 0 then -1 else p.sequence_base + packed.number + packed.distance end, packed.number
    from unnest(p.at_lows, p.at_highs, p.sequence_offsets) with ordinality as packed (low, high, distance, number)
)`);
