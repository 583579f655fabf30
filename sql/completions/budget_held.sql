-- Reserved by calls in progress that began on these days: tokens, or else pico-USD.
create function budget_held(of_tenant text, by text, name text, in_tokens boolean, first integer, last integer)
returns numeric language plpgsql as $$
declare
  held numeric;
begin
  select coalesce(sum(case when in_tokens then r.input + r.output else r.cost end), 0) into held
    from completion_reservation r
    where r.tenant = of_tenant and not r.charged and budget_counts(by, name, r.call)
      and usage_day((r.call ->> 'at')::timestamptz) between first and last;
  return held;
end
$$;
