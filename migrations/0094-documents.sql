-- The words of the last names of documents. A row leads to the documents whose hashes begin so: nearly always one. What
-- their entries say decides.
create table change_document (
  -- the first 32 bits of the hashes of the id and of the entity type
  document integer not null,
  entity integer not null,
  tenant text collate "C" not null references tenant (tenant),
  -- folded, in order, with a blank between them
  words text collate "C" not null,
  primary key (tenant, document, entity)
);
-- Each word stands behind the tenant, so tenants share no list. A query reads all of the pending list, so it is short.
create index change_document_words on change_document using gin (array_to_tsvector(string_to_array(
  tenant || '/' || replace(words, ' ', ' ' || tenant || '/'), ' '))) with (gin_pending_list_limit = 1024);

-- Of the entries with a name; null for the others, and in deltas of an earlier version.
alter table change_delta add column documents uuid[], add column names text[] collate "C";

-- What of a tenant's older entries is left: those before this place. All of them name their documents.
alter table change_path_backlog add column sequence bigint not null default 9007199254740991;
insert into change_path_backlog (tenant, at) select tenant, 9007199254740991 from tenant
  on conflict (tenant) do update set at = excluded.at, sequence = excluded.sequence;
