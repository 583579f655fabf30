-- A budget amount for people: tokens, or US dollars from pico-USD.
create function budget_amount(amount numeric, in_tokens boolean) returns text language sql immutable as $$
  select case when in_tokens then amount::bigint || ' tokens'
              else '$' || trim_scale(amount * 0.000000000001)::text end
$$;
