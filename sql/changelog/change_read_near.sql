-- The usual question in one statement: a page near the newest of one selection from a time on. `tallied` are
-- the kinds of its tallies, as in change_selections. Of more than one key the newest entries are looked for only as far back
-- as twice as many would be, were they spread evenly: a page may come with too few entries for its total, and is then
-- to be asked of change_read. Otherwise the two answer alike.
-- What it has found may be used again: `folded` is how many of the entries at or after the next whole minute the tallies
-- hold as of so many `folds`; null where the rest of the minute has too many entries to be counted one by one each time.
create function change_read_near(of_tenant text, now bigint, window_start bigint, of_actors bigint[], of_kinds bigint[],
                                 tallied bigint[], skip bigint, size bigint, names_since xid8, recent bigint,
                                 lineage text)
returns table (total bigint, current boolean, folded bigint, minute bigint, folds bigint, at bigint, sequence bigint,
               kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text)
language plpgsql stable set plan_cache_mode = force_generic_plan set enable_seqscan = off as $$
#variable_conflict use_column
begin
  return query
  with edge as materialized (
    select greatest(window_start, (select max(greatest(r.horizon, (now / 86400000 - r.keep_days) * 86400000))
                                     from change_retention r where r.tenant = of_tenant)) as since
  ), ahead as materialized (
    select edge.since, (edge.since + 59999) / 60000 * 60000 as minute from edge
  ), begun as materialized (
    select count(*) as entries,
           count(*) filter (where (of_actors = '{0}' or e.actor = any (of_actors))
                              and (of_kinds in ('{}', '{0}') or e.kind = any (of_kinds))) as matching
      from ahead
      cross join lateral (
        select one.kind, one.actor from change_entry one
          where one.tenant = of_tenant and one.at >= ahead.since and one.at < ahead.minute
          order by one.at, one.sequence limit 1001
      ) as e
  ), pending as materialized (
    select one.at, one.kind, one.actor
      from change_delta d
      cross join lateral unnest(d.ats, d.kinds, d.actors) as one (at, kind, actor)
      where d.tenant = of_tenant and one.at >= (select edge.since from edge)
        and (of_actors = '{0}' or one.actor = any (of_actors)) and (of_kinds in ('{}', '{0}') or one.kind = any (of_kinds))
  ), node as materialized (
    select t.actor, t.kind, cell.depth, cell.before, cell.whole,
           t.upto[cardinality(t.upto)] - coalesce(t.upto[child.i], 0) as after,
           case when t.children[child.i] = cell.child then t.upto[child.i] - coalesce(t.upto[child.i - 1], 0) else 0 end as inside
      from edge
      cross join lateral change_cells(edge.since) as cell
      cross join lateral (
        select one.actor, one.kind, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
            and one.actor = any (of_actors) and one.kind = any (tallied)
          offset 0
      ) as t
      cross join lateral (select width_bucket(cell.child, t.children) as i) as child
  ), direct as materialized (
    select node.actor, node.kind, node.before from node
      where (node.actor = 0 or node.kind = 0) and not node.whole and node.inside > 0
        and (node.inside < change_dense() or node.depth = 4)
  ), counted as materialized (
    select (coalesce((select sum(case when node.whole then node.after + node.inside else node.after end) from node
                        where node.actor = 0 or node.kind > 0 or of_kinds = '{}'), 0)
            + coalesce((select sum(t.upto[cardinality(t.upto)]) from change_tally t
                          where t.tenant = of_tenant and t.level = 0
                            and t.bucket > (select edge.since / change_cell(0) from edge)
                            and t.actor = any (of_actors) and t.kind = any (tallied)
                            and (t.actor = 0 or t.kind > 0 or of_kinds = '{}')), 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.kind = direct.kind and one.at >= edge.since and one.at < direct.before
                     order by one.at, one.sequence offset 0
                 ) as e
                 where direct.kind > 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.actor = direct.actor and one.at >= edge.since
                       and one.at < direct.before and (of_kinds = '{}' or one.kind = any (of_kinds))
                     order by one.at, one.sequence offset 0
                 ) as e
                 where direct.actor > 0)
            + (select count(*) from direct cross join edge
                 cross join lateral (
                   select from change_entry one
                     where one.tenant = of_tenant and one.at >= edge.since and one.at < direct.before
                     order by one.at, one.sequence offset 0
                 ) as e
                 where direct.actor = 0 and direct.kind = 0)
            + (select count(*) from pending
                 left join direct on direct.actor in (0, pending.actor) and direct.kind in (0, pending.kind)
                 where direct.before is null or pending.at >= direct.before))::bigint as total
  )
  select counted.total,
         lineage = change_lineage() and (names_since is null or recent =
           (select count(*) from change_kind n where n.tenant = of_tenant and n.registered >= names_since)
           + (select count(*) from change_actor n where n.tenant = of_tenant and n.registered >= names_since)),
         case when begun.entries <= 1000 then
           counted.total - begun.matching - (select count(*) from pending where pending.at >= ahead.minute) end,
         ahead.minute, coalesce((select f.folds from change_folded f where f.tenant = of_tenant), 0),
         e.at, e.sequence, e.kind, e.actor, e.entity_id, e.name, e.schema_version, e.related, e.paths
    from counted cross join begun cross join ahead
    cross join lateral (
      select case when cardinality(of_actors) = 1 and cardinality(of_kinds) <= 1 then edge.since
                  else greatest(edge.since, now - 1000 - 2 * (skip + size) * (now - edge.since) / greatest(counted.total, 1))
             end as since
        from edge
    ) as span
    left join lateral change_newest_between(of_tenant, array[of_actors::text], array[of_kinds::text], span.since,
                                            9223372036854775807, skip, size) as e on true
    order by e.at desc, e.sequence desc;
end
$$;
