create function :"schema".inverted_bytes(bytes bytea) returns bytea language sql immutable strict parallel safe as $$
  select decode(translate(encode(bytes, 'hex'), '0123456789abcdef', 'fedcba9876543210'), 'hex')
$$;
