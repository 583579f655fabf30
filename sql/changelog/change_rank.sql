-- How many entries at or after `since` the selections have: of each cell that holds `since`, what is after it. A key that is
-- too sparse to have a cell further down is counted from its entries, up to where its finest cell knows more.
create function change_rank(of_tenant text, actor_sets text[], kind_sets text[], since bigint)
returns bigint language plpgsql stable as $$
declare
  total bigint;
  pending bigint;
  direct_places integer[];
  direct_actors bigint[];
  direct_kinds bigint[];
  direct_before bigint[];
begin
  with node as materialized (
    select asked.place, asked.kinds, t.actor, t.kind, cell.depth, cell.before, cell.whole,
           t.upto[cardinality(t.upto)] - coalesce(t.upto[child.i], 0) as after,
           case when t.children[child.i] = cell.child then t.upto[child.i] - coalesce(t.upto[child.i - 1], 0) else 0 end as inside
      from change_selections(actor_sets, kind_sets) asked
      cross join change_cells(since) cell
      cross join lateral (
        select one.actor, one.kind, one.children, one.upto from change_tally one
          where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
            and one.actor = any (asked.actors) and one.kind = any (asked.tallied)
          offset 0
      ) as t
      cross join lateral (select width_bucket(cell.child, t.children) as i) as child
  ), direct as materialized (
    -- seconds have no tallies of their own, and a child that is counted whole needs none
    select node.place, node.kinds, node.actor, node.kind, node.before from node
      where (node.actor = 0 or node.kind = 0) and not node.whole and node.inside > 0
        and (node.inside < change_dense() or node.depth = 4)
  )
  select coalesce((select sum(case when node.whole then node.after + node.inside else node.after end) from node
                     where node.actor = 0 or node.kind > 0 or node.kinds = '{}'), 0)
         + coalesce((select sum(t.upto[cardinality(t.upto)])
                       from change_selections(actor_sets, kind_sets) asked
                       join change_tally t on t.tenant = of_tenant and t.level = 0 and t.bucket > since / change_cell(0)
                        and t.actor = any (asked.actors) and t.kind = any (asked.tallied)
                       where t.actor = 0 or t.kind > 0 or asked.kinds = '{}'), 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.kind = direct.kind and one.at >= since and one.at < direct.before
                  order by one.at, one.sequence offset 0
              ) as e
              where direct.kind > 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.actor = direct.actor and one.at >= since and one.at < direct.before
                    and (direct.kinds = '{}' or one.kind = any (direct.kinds))
                  order by one.at, one.sequence offset 0
              ) as e
              where direct.actor > 0)
         + (select count(*) from direct
              cross join lateral (
                select from change_entry one
                  where one.tenant = of_tenant and one.at >= since and one.at < direct.before
                  order by one.at, one.sequence offset 0
              ) as e
              where direct.actor = 0 and direct.kind = 0),
         keys.places, keys.actors, keys.kinds, keys.before
    into total, direct_places, direct_actors, direct_kinds, direct_before
    from (select array_agg(place) as places, array_agg(actor) as actors, array_agg(kind) as kinds, array_agg(before) as before
            from direct) as keys;

  if exists (select from change_delta d where d.tenant = of_tenant) then
    select count(*) into pending
      from change_pending(of_tenant, actor_sets, kind_sets) as one
      left join unnest(direct_places, direct_actors, direct_kinds, direct_before) as direct (place, actor, kind, before)
        using (place, actor, kind)
      where one.at >= since and (direct.before is null or one.at >= direct.before);
    total := total + pending;
  end if;
  return total;
end
$$;
