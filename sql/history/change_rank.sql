-- How many entries of some selections, of which no two share an entry, are at or after each of some moments. Selection i has
-- actor_sets[i] and kind_sets[i], arrays written as texts (an array of arrays could not have them of unlike lengths):
--   {0} and {0}      all entries
--   {0} and {k,l}    entries of the kinds k and l, by any actor
--   {a,b} and {}     entries of the actors a and b, of any kind
--   {a,b} and {k,l}  entries of the actors a and b of the kinds k and l
-- A key is a range of an index of the entries, and what a tally is for: (0, kind) in a selection by kinds, (actor, 0) in one by
-- actors. In each cell that holds the moment a key's tally tells how many entries come after the child that holds it. A key
-- that is too sparse to have a tally of that child is counted from its entries.
create function change_rank(of_tenant text, actor_sets text[], kind_sets text[], moments bigint[])
returns bigint[] language plpgsql stable as $$
declare
  any_pending constant boolean := exists (select from change_delta d where d.tenant = of_tenant);
  ranks bigint[] := array_fill(0::bigint, array[cardinality(moments)]);
  actors bigint[];
  kinds bigint[];
  by_actors boolean;
  -- the kinds whose tallies are added up, and those that tell how dense a key is
  counted bigint[];
  tallied bigint[];
  lowest bigint;
  highest bigint;
  since bigint;
  rank bigint;
  later bigint;
  pending_ats bigint[];
  pending_keys bigint[];
  -- the keys that are counted from their entries, and where that ends
  sparse bigint[];
  ends bigint[];
  -- the same of some cells, and the actors that have tallies in finer ones
  sparse_here bigint[];
  ends_here bigint[];
  left_over bigint[];
  first_depth integer;
  last_depth integer;
begin
  for place in 1..cardinality(actor_sets) loop
    actors := actor_sets[place]::bigint[];
    kinds := kind_sets[place]::bigint[];
    by_actors := actors <> '{0}';
    counted := case when kinds = '{}' then '{0}' else kinds end;
    tallied := case when by_actors and kinds <> '{}' then 0::bigint || kinds else counted end;
    select min(k), max(k) into lowest, highest from unnest(tallied) as k;
    if any_pending then
      select array_agg(p.at order by p.at), array_agg(p.key order by p.at) into pending_ats, pending_keys
        from change_pending(of_tenant, actors, kinds) p;
    end if;
    for i in 1..cardinality(moments) loop
      since := moments[i];
      rank := 0;
      sparse := null;
      ends := null;
      left_over := actors;
      first_depth := 0;
      if by_actors and kinds <> '{}' then
        -- to read the few entries of an actor costs less than the tallies of all its kinds
        select array_agg(t.actor) filter (where t.entries < 64),
               array_agg(t.cell_end) filter (where t.entries < 64),
               array_agg(t.actor) filter (where t.entries >= 64)
          into sparse, ends, left_over
          from unnest(actors) as of (actor)
          cross join lateral (
            select one.actor, (since / 88473600000 + 1) * 88473600000 as cell_end,
                   one.upto[cardinality(one.upto)]
                     - coalesce(one.upto[width_bucket((since % 88473600000 / 2764800000 - 1)::smallint, one.children)], 0) as entries
              from change_tally one
              where one.tenant = of_tenant and one.level = 0 and one.bucket = since / 88473600000
                and one.actor = of.actor and one.kind = 0
              offset 0
          ) as t;
      end if;
      while left_over is not null and first_depth <= 4 loop
        -- most of many actors are sparse already in the coarsest cell, and have no tallies in the others
        last_depth := case when first_depth = 0 and cardinality(left_over) > 16 then 0 else 4 end;
        select coalesce(sum(node.later) filter (where node.kind = any (counted)), 0),
               array_agg(node.key) filter (where node.few), array_agg(node.before) filter (where node.few),
               array_agg(node.actor) filter (where node.many)
          into later, sparse_here, ends_here, left_over
          from (
            select t.actor, t.kind, case when by_actors then t.actor else t.kind end as key, cell.before,
                   t.upto[cardinality(t.upto)] - coalesce(t.upto[t.place], 0) as later,
                   here.holds and (cell.depth = 4 or here.entries < 64) as few, here.holds and here.entries >= 64 as many
              from change_cells(since) cell
              cross join unnest(left_over) as of (actor)
              cross join lateral (
                -- fenced: each actor is a range of the index, and the place is found once. Before PostgreSQL 17 a generic plan
                -- may take "= any" for a filter, which goes through the whole list for each row of the cell.
                select one.actor, one.kind, one.children, one.upto,
                       width_bucket((cell.child - cell.whole::integer)::smallint, one.children) as place
                  from change_tally one
                  where one.tenant = of_tenant and one.level = cell.depth and one.bucket = cell.bucket
                    and one.actor = of.actor and one.kind >= lowest and one.kind <= highest and one.kind = any (tallied)
                  offset 0
              ) as t
              cross join lateral (
                select not cell.whole and t.children[t.place] = cell.child and (t.kind = 0 or not by_actors) as holds,
                       t.upto[t.place] - coalesce(t.upto[t.place - 1], 0) as entries
              ) as here
              where cell.depth between first_depth and last_depth
          ) as node;
        rank := rank + later;
        sparse := sparse || sparse_here;
        ends := ends || ends_here;
        first_depth := last_depth + 1;
      end loop;
      if exists (select from change_tally t where t.tenant = of_tenant and t.level = 0 and t.bucket > since / 88473600000) then
        select coalesce(sum(t.upto[cardinality(t.upto)]), 0) into later
          from change_tally t
          where t.tenant = of_tenant and t.level = 0 and t.bucket > since / 88473600000
            and t.actor = any (actors) and t.kind = any (counted);
        rank := rank + later;
      end if;
      if sparse is not null then
        rank := rank + change_direct(of_tenant, actors, kinds, sparse, ends, since);
      end if;
      if pending_ats is not null then
        rank := rank + cardinality(pending_ats) - width_bucket(since - 1, pending_ats);
        if sparse is not null then
          -- those were counted with the entries
          rank := rank - (
            select count(*)
              from unnest(pending_ats, pending_keys) as p (at, key)
              cross join (select distinct unnest(ends) as before) as counted
              where p.at >= since and p.at < counted.before and (p.key, counted.before) in (select * from unnest(sparse, ends)));
        end if;
      end if;
      ranks[i] := ranks[i] + rank;
    end loop;
  end loop;
  return ranks;
end
$$;
