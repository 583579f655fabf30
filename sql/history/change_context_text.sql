-- The text of a member of an entry's context; null where it is no string, number or boolean, or not there.
create function change_context_text(context text, name text) returns text
language plpgsql immutable parallel safe cost 100 as $$
declare
  member constant json := case when strpos(context, to_json(name)::text) > 0 or strpos(context, '\') > 0
    then plain_json(context)::json -> name end;
begin
  return case when json_typeof(member) in ('string', 'number', 'boolean') then member #>> '{}' end;
end
$$;
