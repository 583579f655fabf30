-- A query for kinds and many actors is counted from an index alone that has both. To build it stops writers, so the service
-- builds it, after the start and beside them, where there are entries already.
do $$
begin
  if not exists (select from change_entry) then
    create index change_entry_kind_actor on change_entry (tenant, kind, at, sequence) include (actor);
    drop index change_entry_kind;
  end if;
end
$$;
