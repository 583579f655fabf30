-- What the tokens of a call cost, in pico-USD, by a price as the service knows it: tiers by rising `above`, of which
-- the last one applies that the input is above. Cached tokens and cache writes are parts of the input, also where a
-- vendor counts more of them. Null: a figure or the price is not known. Without a query: each call runs it.
create function call_cost(price jsonb, input bigint, cached bigint, written bigint, output bigint)
returns numeric language plpgsql immutable as $$
declare
  tiers constant jsonb := price -> 'tiers';
  tier jsonb;
  of_cache constant bigint := least(coalesce(cached, 0), input);
  of_writes constant bigint := least(coalesce(written, 0), input - of_cache);
begin
  for place in 0..coalesce(jsonb_array_length(tiers), 0) - 1 loop
    if (tiers -> place ->> 'above')::bigint < input then
      tier := tiers -> place;
    end if;
  end loop;
  return (input - of_cache - of_writes) * (tier ->> 'input')::numeric
         + of_cache * (tier ->> 'cachedInput')::numeric
         + of_writes * (tier ->> 'cacheWrites')::numeric
         + output * (tier ->> 'output')::numeric;
end
$$;
