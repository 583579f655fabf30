-- What of an entry was erased, as a JSON array: actor, entityId, name, related, context, paths.<path>. Null: nothing.
alter table change_entry add column erased text collate "C";

-- The key under which identities of erased entries are kept, sealed: a change that is sent again is known by them. And how many steps
-- of erasures there were: processes forget what they keep in memory when it is another number.
alter table installation add column erasure_key bytea;
alter table installation add column erasures bigint not null default 0;

-- An erasure: why, and how many entries it has changed. `subject`: whom, and what stands in place of the name, sealed.
create table change_erasure (
  tenant text collate "C" not null references tenant (tenant),
  erasure uuid not null,
  begun_at timestamptz not null,
  ended_at timestamptz,
  reason text collate "C" not null,
  entries bigint not null default 0,
  subject bytea not null,
  primary key (tenant, erasure)
);

-- Documents that were erased, by a hash under that key of their type and id: a capture that reads all rows again tells them by it.
create table change_erased_document (
  tenant text collate "C" not null references tenant (tenant),
  document uuid not null,
  primary key (tenant, document)
);
