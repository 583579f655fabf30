-- A page with its entries, kinds and actors as numbers that the service has names for. The total stands in every row;
-- where the page is empty, in one that has nothing else. `current`: whether the snapshot knows no names besides those
-- that somebody read before, as many as `recent` registered by transactions from `names_since` on. Null: nobody did.
-- `start`, `start_rank` and `folds` are what is known of a single interval, as for change_read_by_landmarks, or null. The
-- first row has more of that: what the tallies hold at or after `moments`, as of so many `now_folds`; null where not all is
-- folded.
create function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[],
                            actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8, recent bigint,
                            lineage text, start bigint, start_rank bigint, folds bigint)
returns table (total bigint, current boolean, moments bigint[], ranks bigint[], now_folds bigint, at bigint,
               sequence bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
declare
  horizon bigint := coalesce((select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                from change_retention r where r.tenant = of_tenant), 0);
  names_current boolean := lineage = change_lineage() and (names_since is null or recent =
    (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
    + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since));
  settled constant boolean := not exists (select from change_delta d where d.tenant = of_tenant);
  known bigint;
begin
  now_folds := coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0);
  if names_current and change_read.folds = now_folds and greatest(sinces[1], horizon) between start - 59999 and start then
    known := start_rank + change_few(of_tenant, actor_sets, kind_sets, greatest(sinces[1], horizon), start);
    if not settled then
      known := known + count(*) from change_pending(of_tenant, actor_sets, kind_sets) as pending where pending.at >= start;
    end if;
  end if;
  return query
    select page.total, names_current, case when settled then page.moments end, case when settled then page.ranks end, now_folds,
           e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
      from change_page(of_tenant, now, horizon, sinces, befores, selection_ends, actor_sets, kind_sets, skip, size,
                       known) as page
      -- a place as a range that is read in order: a plan from when the tables were small would go through all entries
      left join lateral (
        select one.* from change_entry one
          where one.tenant = of_tenant and (one.at, one.sequence) >= (page.at, page.sequence)
            and (one.at, one.sequence) <= (page.at, page.sequence)
          order by one.at, one.sequence limit 1
      ) as e on true
      order by page.at desc nulls first, page.sequence desc;
end
$$;
