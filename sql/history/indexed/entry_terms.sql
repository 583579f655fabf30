-- Numbers that lead to an entry: of its correlation id, and of each member of its context that is a string, a number or
-- a boolean of at most 200 characters. Each is 32 bits of a hash, which another tenant or value may share, so a query
-- compares the values too (src/history/search/member-terms.ts).
create function :"schema".entry_terms(tenant text, correlation uuid, correlation_text text, context text)
returns integer[] language plpgsql immutable parallel safe cost 1000 as $$
begin
  return array(
    select ('x' || left(encode(sha256(convert_to(tenant || ' ' || term.text, 'UTF8')), 'hex'), 8))::bit(32)::integer
      from (
        select 'correlation ' || coalesce(correlation::text, correlation_text) as text
          where correlation is not null or correlation_text is not null
        union all
        select 'context ' || member.key || '=' || (member.value #>> '{}')
          from json_each(:"schema".plain_json(context)::json) as member (key, value)
          where json_typeof(member.value) in ('string', 'number', 'boolean') and length(member.value #>> '{}') <= 200
      ) as term);
end
$$;
