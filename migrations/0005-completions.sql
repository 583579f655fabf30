-- Completions: what a tenant has used of the shared token, and what repeats of a request are answered with.
-- docs/decisions/0004-quota-and-completions.md tells why it is laid out like this.

-- One row a tenant, for its lifetime. Whatever changes a reservation locks this row first.
create table completion_quota (
  tenant          text collate "C" primary key references tenant (tenant),
  input_used      bigint not null default 0,
  output_used     bigint not null default 0,
  input_reserved  bigint not null default 0 check (input_reserved >= 0),
  output_reserved bigint not null default 0 check (output_reserved >= 0)
) with (fillfactor = 50);

-- One row a call that has not been settled. When its lease has ended its process counts as dead: it is charged in
-- full, and kept for a while, because figures that come late correct it.
create table completion_reservation (
  tenant      text collate "C" not null references tenant (tenant),
  reservation uuid not null,
  input       bigint not null,
  output      bigint not null,
  expires_at  timestamptz not null,
  charged     boolean not null default false,
  primary key (tenant, reservation)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
create index completion_reservation_open on completion_reservation (tenant, expires_at) where not charged;

-- Requests that came with an Idempotency-Key, which is kept as its hash. While one runs, `expires_at` is how long its
-- process is believed to live, which it goes on to extend; afterwards, how long the sealed outcome is remembered.
create table completion_request (
  tenant      text collate "C" not null references tenant (tenant),
  client_id   text collate "C" not null,
  key_hash    bytea not null,
  attempt     uuid not null,
  fingerprint bytea not null,
  state       text not null check (state in ('running', 'succeeded', 'failed')),
  expires_at  timestamptz not null,
  outcome     bytea check ((outcome is null) = (state = 'running')),
  primary key (tenant, client_id, key_hash)
);
create index completion_request_expiry on completion_request (expires_at);
