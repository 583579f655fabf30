-- What a call with so many tokens at most costs at most, in pico-USD: by the dearest of the prices that may apply, of
-- kinds of input as of tiers. Null: it has no price. Not in SQL: each statement would plan such a routine again.
create function call_bound(price jsonb, input bigint, output bigint) returns numeric language plpgsql immutable as $$
begin
  return (
    select max(call_bound.input * greatest((t.tier ->> 'input')::numeric, (t.tier ->> 'cachedInput')::numeric,
                                           (t.tier ->> 'cacheWrites')::numeric)
               + call_bound.output * (t.tier ->> 'output')::numeric)
      from jsonb_array_elements(price -> 'tiers') as t (tier)
      where (t.tier ->> 'above')::bigint < call_bound.input or (t.tier ->> 'above')::bigint < 0
  );
end
$$;
