-- The tenants with sessions of a person of an OpenID provider. With a sid: those of this session of the provider.
create function tenants_of_person(of_issuer text, of_subject text, of_sid text) returns table (tenant text)
language sql as $$
  select w.tenant from tenants_with(array['console_session'], array[concat_ws(' and ',
    format('issuer = %L', of_issuer),
    case when of_subject is not null then format('subject = %L', of_subject) end,
    case when of_sid is not null then format('sid = %L', of_sid) end)]) as w
$$;
