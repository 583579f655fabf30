-- The sums of two sets of counts by kind: {"names": 1} and {"names": 2, "feed": 1} are {"feed":1,"names":3}. It has no
-- spaces, like the JSON of lists.
create function access_kinds_add(known json, added json) returns json language sql immutable as $$
  select concat('{', string_agg(concat(to_json(kind), ':', total), ',' order by kind), '}')::json
    from (
      select key as kind, sum(value::bigint) as total
        from (select * from json_each_text(known) union all select * from json_each_text(added)) as counts
        group by key
    ) as totals
$$;
