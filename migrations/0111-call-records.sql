-- A call of a model: who made it, which model answered, and what it used. Without any text. The id begins with the milliseconds of `at`, in
-- hexadecimal digits (UUID version 7), so that the primary key has the order of time. Kept for 90 days.
create table call_record (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  at timestamptz not null,
  -- the operation that made it
  operation text collate "C" not null,
  -- whose key it was: own, or shared
  token text collate "C" not null,
  provider text collate "C" not null,
  model text collate "C" not null,
  -- the id of the client or the key
  client text collate "C" not null,
  agent text collate "C",
  -- whom the client names as its user
  end_user text collate "C",
  -- null: the provider told no figure, and no quota was charged with one
  input_tokens bigint,
  -- parts of the input
  cached_tokens bigint,
  cache_write_tokens bigint,
  output_tokens bigint,
  -- a part of the output
  reasoning_tokens bigint,
  -- milliseconds; null: the answer was no stream
  first_token_ms integer,
  -- null: nobody knows when it ended
  duration_ms integer,
  finish_reason text collate "C",
  -- why it has no answer
  cause text collate "C",
  primary key (tenant, id)
);

-- The begin of the record of the call. It is written as it is where nobody settles the reservation.
alter table completion_reservation add column call jsonb;
