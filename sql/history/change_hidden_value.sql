-- A value with masks, for change_hidden. A null stays null. An element of an array is at the path of the array, with
-- its position. An array nested deeper than `levels` counts as hidden: the server's stack is limited.
create function change_hidden_value(path text, value jsonb, hidden text, levels integer) returns jsonb
language plpgsql immutable parallel safe as $$
begin
  if value = 'null' then
    return value;
  elsif path ~ hidden or levels = 0 and jsonb_typeof(value) = 'array' then
    return '"********"';
  elsif jsonb_typeof(value) = 'array' then
    return coalesce((
      select jsonb_agg(change_hidden_value(change_hidden_value.path || '.' || element.place - 1, element.value,
                                           change_hidden_value.hidden, change_hidden_value.levels - 1)
                       order by element.place)
        from jsonb_array_elements(change_hidden_value.value) with ordinality as element (value, place)
    ), '[]');
  end if;
  return value;
end
$$;
