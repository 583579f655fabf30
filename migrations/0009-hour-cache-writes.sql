-- A part of cache_write_tokens, which has a price of its own.
alter table call_record add column hour_cache_write_tokens bigint;
