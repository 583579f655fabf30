-- The times and sequences of a row that reaches the end of its block of 4,096 positions are relative: where `ats` is empty, the entry with the
-- number n of the row has the time `oldest + at_highs[n] * 2^32 + at_lows[n]` and the sequence `sequence_base + n + sequence_offsets[n]`.
-- at_highs -1: no entry. Rows of before stay as they are.
alter table change_position add column sequence_base bigint, add column at_lows integer[], add column at_highs smallint[],
  add column sequence_offsets integer[];
-- The low halves of times do not compress; highs and offsets repeat. A cluster does not change the storage of distributed tables.
set local citus.enable_ddl_propagation = off;
alter table change_position alter column at_lows set storage external;
