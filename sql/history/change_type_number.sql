-- In place of a kind, the number under which tallies count the entries of a type.
create function change_type_number(type text) returns bigint language sql immutable parallel safe as
  $$ select case type when 'create' then -1 when 'update' then -2 when 'delete' then -3 end::bigint $$;
