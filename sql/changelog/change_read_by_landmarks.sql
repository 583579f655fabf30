-- A page of a window whose ends are known, read from somewhere near it: how many entries of the selections the tallies
-- hold at or after `start` (in the minute after the window begins), `window_end` (null: infinite) and `landmark`, as of so
-- many `folds`. It is read from the landmark towards what is older, or `upward`; null: from the end of the window. What is
-- after `until` is not looked at. The total is null, and nothing else is told, where the tallies may hold others by now,
-- where the snapshot knows further names, or where the page is not on this side of the landmark or, upwards, more than
-- 1,200 entries away; a page may come with too few entries for its total. Both are then to be asked of change_read.
-- `settled`: whether all is folded.
create function change_read_by_landmarks(of_tenant text, now bigint, window_start bigint, window_end bigint, actor_sets text[],
                                         kind_sets text[], folds bigint, start bigint, start_rank bigint, end_rank bigint,
                                         landmark bigint, landmark_rank bigint, upward boolean, until bigint,
                                         skip bigint, size bigint, names_since xid8, recent bigint, lineage text)
returns table (total bigint, settled boolean, at bigint, sequence bigint, kind bigint, actor bigint, entity_id text,
               name text, schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
declare
  since bigint;
  -- at or after the beginning, the end and the landmark
  newer_than_start bigint;
  newer_than_end bigint := coalesce(end_rank, 0);
  newer_than_landmark bigint;
  last_rank bigint;
begin
  if actor_sets = '{"{0}"}' and kind_sets = '{"{0}"}' and names_since is null and window_end is null and landmark is null
     and not upward then
    -- the usual question, in one statement
    return query
      select counted.total, counted.settled, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
        from (select) as always
        left join (
          select edge.since, pending.settled,
                 start_rank + begun.entries + case when pending.settled then 0 else
                   (select count(*) from change_delta d cross join lateral unnest(d.ats) as one (at)
                      where d.tenant = of_tenant and one.at >= start) end as total
            from (
              select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                               from change_retention r where r.tenant = of_tenant)) as since
                -- fenced, or each mention of it would look for the horizon again
                offset 0
            ) as edge
            cross join lateral (
              select count(*) as entries from (
                select from change_entry one
                  where one.tenant = of_tenant and one.at >= edge.since and one.at < start
                  order by one.at, one.sequence limit 1001
              ) as one
            ) as begun
            cross join (
              select not exists (select from change_delta d where d.tenant = of_tenant) as settled offset 0
            ) as pending
            where edge.since <= start and edge.since > start - 60000 and begun.entries <= 1000
              and change_read_by_landmarks.folds = coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0)
              and lineage = change_lineage()
        ) as counted on true
        left join lateral (
          select one.* from change_entry one
            where one.tenant = of_tenant and one.at >= counted.since
            order by one.at desc, one.sequence desc offset skip limit size
        ) as e on true
        order by e.at desc, e.sequence desc;
    return;
  end if;
  select edge.since, not exists (select from change_delta d where d.tenant = of_tenant)
    into since, settled
    from (
      select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                       from change_retention r where r.tenant = of_tenant)) as since
        offset 0
    ) as edge
    where edge.since <= start and edge.since > start - 60000 and (landmark is null or landmark >= edge.since)
      and (window_end is null or window_end > edge.since)
      and change_read_by_landmarks.folds = coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0)
      and lineage = change_lineage()
      and (names_since is null or recent =
        (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
        + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since));
  if not found then
    return next;
    return;
  end if;
  newer_than_start := start_rank + change_few(of_tenant, actor_sets, kind_sets, since, start);
  newer_than_landmark := landmark_rank;
  if not settled then
    select newer_than_start + count(*) filter (where pending.at >= start),
           newer_than_end + count(*) filter (where pending.at >= window_end),
           newer_than_landmark + count(*) filter (where pending.at >= landmark)
      into newer_than_start, newer_than_end, newer_than_landmark
      from change_pending(of_tenant, actor_sets, kind_sets) as pending;
  end if;
  total := newer_than_start - newer_than_end;
  skip := skip + newer_than_end;
  last_rank := least(skip + size, newer_than_start);
  -- what waits to be folded may stand between
  if total is null or not upward and newer_than_landmark > skip
     or upward and coalesce(newer_than_landmark, newer_than_start) - last_rank not between 0 and 1200 then
    total := null;
  elsif upward and last_rank > skip then
    return query
      select total, settled, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
        from change_oldest_between(of_tenant, actor_sets, kind_sets, coalesce(landmark, since),
                                   coalesce(until, 9223372036854775807),
                                   coalesce(newer_than_landmark, newer_than_start) - last_rank, last_rank - skip) as e
        order by e.at desc, e.sequence desc;
  elsif last_rank > skip then
    return query
      select total, settled, e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
        from change_newest_between(of_tenant, actor_sets, kind_sets, greatest(since, until),
                                   coalesce(landmark, 9223372036854775807),
                                   skip - coalesce(newer_than_landmark, 0), last_rank - skip) as e
        order by e.at desc, e.sequence desc;
  end if;
  if not found or total is null or last_rank <= skip then
    return next;
  end if;
end
$$;
