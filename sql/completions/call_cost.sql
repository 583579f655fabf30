-- What the tokens of a call cost, in pico-USD, by a price as the service knows it: tiers by rising `above`, of which
-- the last one applies that the input is above. Cached tokens and cache writes are parts of the input, also where a
-- vendor counts more of them. Null: a figure or the price is not known.
create function call_cost(price jsonb, input bigint, cached bigint, written bigint, output bigint)
returns numeric language sql immutable as $$
  select (call_cost.input - parts.cached - parts.written) * (t.tier ->> 'input')::numeric
         + parts.cached * (t.tier ->> 'cachedInput')::numeric
         + parts.written * (t.tier ->> 'cacheWrites')::numeric
         + call_cost.output * (t.tier ->> 'output')::numeric
    from jsonb_array_elements(price -> 'tiers') with ordinality as t (tier, place)
    cross join (select least(coalesce(call_cost.cached, 0), call_cost.input) as cached) as c
    cross join lateral (select c.cached, least(coalesce(call_cost.written, 0), call_cost.input - c.cached) as written)
      as parts
    where (t.tier ->> 'above')::bigint < call_cost.input
    order by t.place desc
    limit 1
$$;
