-- The decision on a call: 'reserved', with its output cap reduced to what is left; 'wait', if it fits once others have
-- settled; 'exceeded', if it does not.
create function completion_quota_decide(quota completion_quota, input_bound bigint, output_cap bigint,
                                        least_output bigint, input_limit bigint, output_limit bigint,
                                        out outcome text, out granted bigint)
language plpgsql immutable as $$
begin
  granted := least(output_cap, output_limit - quota.output_used);
  outcome := case
    when quota.input_used + input_bound > input_limit or quota.output_used + least_output > output_limit
      then 'exceeded'
    when quota.input_used + quota.input_reserved + input_bound > input_limit
      or quota.output_used + quota.output_reserved + granted > output_limit
      then 'wait'
    else 'reserved'
  end;
end
$$;
