-- What is asked for is a list of selections, and no entry may belong to two of them: selection i has
-- actor_sets[i] and kind_sets[i], arrays written as texts (an array of arrays could not have them of unlike lengths).
--   {0} and {k,l}    entries of the kinds k and l, by whomever
--   {0} and {0}      all entries
--   {a,b} and {}     entries of the actors a and b, of any kind
--   {a,b} and {k,l}  entries of the actors a and b of the kinds k and l
-- A key is a range of an index, and what one tally is for: (0, kind) in a selection by kinds, (actor, 0) in one by actors.
-- It tells how dense the history is; in a selection by actors and kinds what counts are the tallies of both, which are
-- there wherever the actor's is.
create function change_selections(actor_sets text[], kind_sets text[])
returns table (place integer, actors bigint[], kinds bigint[], tallied bigint[]) language sql stable as $$
  select s.place::integer, s.actors::bigint[], s.kinds::bigint[],
         case when s.actors = '{0}' then s.kinds::bigint[] else 0::bigint || s.kinds::bigint[] end
    from unnest(actor_sets, kind_sets) with ordinality as s (actors, kinds, place) offset 0
$$;
