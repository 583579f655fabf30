-- What a call adds to the totals, or subtracts with sign -1. `user_fixed`: false where metadata alone names the user,
-- whom no total has.
create function call_change(sign integer, at timestamptz, client text, maker text, agent text, model text,
                            provider text, end_user text, user_fixed boolean, input_tokens bigint,
                            output_tokens bigint, cost numeric)
returns jsonb language sql immutable as $$
  select jsonb_build_object('sign', sign, 'day', usage_day(at), 'client', client, 'maker', maker, 'agent', agent,
                            'model', model, 'provider', provider,
                            'user', case when user_fixed is distinct from false then end_user end,
                            'key user', case when user_fixed then end_user end,
                            'input', sign * coalesce(input_tokens, 0), 'output', sign * coalesce(output_tokens, 0),
                            'cost', sign * cost)
$$;
