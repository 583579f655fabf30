-- The max. cost in pico-USD of a call with these max. tokens, at the highest applicable price of input kinds and tiers.
-- Null: no price. Not in SQL, because each statement would plan it again.
create function call_bound(price jsonb, input bigint, output bigint) returns numeric language plpgsql immutable as $$
begin
  return (
    select max(call_bound.input * greatest((t.tier ->> 'input')::numeric, (t.tier ->> 'cachedInput')::numeric,
                                           (t.tier ->> 'cacheWrites')::numeric,
                                           (t.tier ->> 'hourCacheWrites')::numeric)
               + call_bound.output * (t.tier ->> 'output')::numeric)
      from jsonb_array_elements(price -> 'tiers') as t (tier)
      where (t.tier ->> 'above')::bigint < call_bound.input or (t.tier ->> 'above')::bigint < 0
  );
end
$$;
