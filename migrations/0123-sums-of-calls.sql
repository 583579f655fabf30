-- Who made the key that a call was made with: a client. Null: nobody, or no key made the call.
alter table call_record add column maker text collate "C";

-- What the calls of a UTC day used and cost, together and by each of what tells them apart. At each moment the sums of the records, which
-- are deleted after 90 days; the sums stay. The row of all calls of a day is locked first, so writers of a day wait for each other there.
create table call_sum (
  tenant text collate "C" not null references tenant (tenant),
  -- 'all', or 'client', 'maker', 'agent', 'model', 'provider', 'user'; 'other model', 'other user': of those without a row of their own
  by text collate "C" not null,
  -- on which the calls began, as days since 1970
  day integer not null,
  -- '' where there is nothing to name
  name text collate "C" not null,
  calls bigint not null,
  -- calls whose cost nobody knows
  uncosted bigint not null,
  input bigint not null,
  output bigint not null,
  -- of the others, in pico-USD
  cost numeric not null,
  primary key (tenant, by, day, name)
);

insert into call_sum (tenant, by, day, name, calls, uncosted, input, output, cost)
  select r.tenant, part.by, floor(extract(epoch from r.at) / 86400)::integer, part.name, count(*),
         count(*) filter (where r.cost is null), coalesce(sum(r.input_tokens), 0), coalesce(sum(r.output_tokens), 0),
         coalesce(sum(r.cost), 0)
    from call_record r
    cross join lateral (values ('all', ''), ('client', r.client), ('agent', r.agent), ('model', r.model),
                               ('provider', r.provider), ('user', r.end_user)) as part (by, name)
    where part.name is not null
    group by 1, 2, 3, 4;
