-- What the calls of a tenant, or of one client, agent or model of it, may use and cost in a period. As other documents it is kept twice: as
-- the JSON text that goes out, and as jsonb for filters and sorting; the columns besides are what a reservation reads.
create table budget (
  tenant text collate "C" not null references tenant (tenant),
  id text collate "C" not null,
  version bigint not null,
  document text collate "C" not null,
  fields jsonb not null,
  -- which calls count: 'all', or those of this client (its keys' too), agent or model
  by text collate "C" not null,
  name text collate "C" not null,
  -- 'day' or 'month' of UTC, or 'lifetime'
  period text collate "C" not null,
  -- in pico-USD; or else in tokens of input and output together
  limit_cost numeric,
  limit_tokens bigint,
  primary key (tenant, id),
  check (num_nonnulls(limit_cost, limit_tokens) = 1)
);

-- A threshold that a period has reached. Its e-mail is queued in the same transaction.
create table budget_alert (
  tenant text collate "C" not null references tenant (tenant),
  budget text collate "C" not null,
  -- the first day of the period
  first integer not null,
  -- percent of the limit
  threshold integer not null,
  primary key (tenant, budget, first, threshold),
  foreign key (tenant, budget) references budget (tenant, id) on delete cascade
);

-- A tenant with budgets whose sums have changed since its alerts were looked at. The number rises with each change.
create table budget_due (
  tenant text collate "C" not null references tenant (tenant),
  changes bigint not null,
  primary key (tenant)
);

-- What the call costs at most, in pico-USD; null: nobody knows.
alter table completion_reservation add column cost numeric;

create index call_sum_of_name on call_sum (tenant, by, name, day);
