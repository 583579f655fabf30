-- Whether a call counts towards a budget of this client, agent, model or user, or of all. `call`: the start of its
-- record, whose maker has the ids of all clients through which its client or key was made, with blanks between them. A
-- user whom metadata alone names (`user_fixed` is false) does not count.
create function budget_counts(by text, name text, call jsonb) returns boolean language sql immutable as $$
  select case by when 'all' then true
                 when 'client' then name = any (string_to_array(call ->> 'maker', ' ') || (call ->> 'client'))
                 when 'user' then name = call ->> 'end_user' and (call ->> 'user_fixed') is distinct from 'false'
                 else name = call ->> by end
$$;
