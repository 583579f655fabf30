
table access_event
  address text collate "C"
  at timestamp with time zone not null
  client text collate "C" not null
  count bigint not null default 1
  details json not null
  id text collate "C" not null
  issuer text collate "C"
  kind text collate "C" not null
  name text collate "C" not null
  program text
  session text collate "C"
  subject text collate "C"
  tenant text collate "C" not null
  access_event_pkey PRIMARY KEY (tenant, id)
  access_event_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table access_key
  created_at timestamp with time zone not null default now()
  expires_at timestamp with time zone
  issuer text collate "C"
  key_id text collate "C" not null
  made_by text collate "C"
  models text[]
  name text not null
  rate integer
  restriction jsonb
  revoked_at timestamp with time zone
  scopes text[] not null
  secret_hash bytea not null
  subject text collate "C"
  tenant text collate "C" not null
  used_at timestamp with time zone
  access_key_pkey PRIMARY KEY (tenant, key_id)
  access_key_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX access_key_made_by ON access_key USING btree (tenant, made_by) WHERE made_by IS NOT NULL

table agent
  document text collate "C" not null
  enabled boolean not null
  failures integer not null default 0
  fields jsonb not null
  id text collate "C" not null
  sealed_headers bytea
  sealed_key bytea
  tenant text collate "C" not null
  term bigint not null default 1
  version bigint not null
  agent_pkey PRIMARY KEY (tenant, id)
  agent_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table agent_request_log
  document text collate "C" not null
  fields jsonb not null
  full_document text collate "C"
  full_fields jsonb
  id text collate "C" not null
  tenant text collate "C" not null
  agent_request_log_pkey PRIMARY KEY (tenant, id)
  agent_request_log_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX agent_request_log_request ON agent_request_log USING btree (tenant, (fields ->> 'requestId'::text))

table agent_session
  id text collate "C" not null
  tenant text collate "C" not null
  turns bigint not null default 0
  agent_session_pkey PRIMARY KEY (tenant, id)
  agent_session_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table agent_session_log
  completion_tokens bigint not null
  document text collate "C" not null
  duration bigint not null
  fields jsonb not null
  full_document text collate "C"
  full_fields jsonb
  id text collate "C" not null
  prompt_tokens bigint not null
  tenant text collate "C" not null
  agent_session_log_pkey PRIMARY KEY (tenant, id)
  agent_session_log_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table agent_tool
  agent_id text collate "C" not null
  definition text collate "C" not null
  server text collate "C" not null
  sha256 text collate "C" not null
  tenant text collate "C" not null
  agent_tool_pkey PRIMARY KEY (tenant, agent_id, server, sha256)
  agent_tool_tenant_agent_id_fkey FOREIGN KEY (tenant, agent_id) REFERENCES agent(tenant, id) ON DELETE CASCADE

table agent_turn
  "position" bigint not null
  agent_id text collate "C" not null
  began_at timestamp with time zone not null default clock_timestamp()
  bytes integer not null default 0
  completion_tokens bigint not null default 0
  exchange text collate "C"
  expires_at timestamp with time zone not null
  from_history boolean not null default false
  log_id text collate "C"
  prompt_tokens bigint not null default 0
  request_id text collate "C" not null
  session_id text collate "C" not null
  state text not null
  tenant text collate "C" not null
  agent_turn_check CHECK ((exchange IS NULL) = (state = 'running'::text))
  agent_turn_pkey PRIMARY KEY (tenant, session_id, "position")
  agent_turn_state_check CHECK (state = ANY (ARRAY['running'::text, 'answered'::text]))
  agent_turn_tenant_session_id_fkey FOREIGN KEY (tenant, session_id) REFERENCES agent_session(tenant, id)
  CREATE INDEX agent_turn_running ON agent_turn USING btree (tenant, session_id, "position") WHERE state = 'running'::text

table budget
  by text collate "C" not null
  document text collate "C" not null
  fields jsonb not null
  id text collate "C" not null
  limit_cost numeric
  limit_tokens bigint
  name text collate "C" not null
  period text collate "C" not null
  tenant text collate "C" not null
  version bigint not null
  budget_check CHECK (num_nonnulls(limit_cost, limit_tokens) = 1)
  budget_pkey PRIMARY KEY (tenant, id)
  budget_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table budget_alert
  budget text collate "C" not null
  first integer not null
  tenant text collate "C" not null
  threshold integer not null
  budget_alert_pkey PRIMARY KEY (tenant, budget, first, threshold)
  budget_alert_tenant_budget_fkey FOREIGN KEY (tenant, budget) REFERENCES budget(tenant, id) ON DELETE CASCADE
  budget_alert_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table budget_due
  changes bigint not null
  tenant text collate "C" not null
  budget_due_pkey PRIMARY KEY (tenant)
  budget_due_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table call_record
  agent text collate "C"
  at timestamp with time zone not null
  cache_write_tokens bigint
  cached_tokens bigint
  cause text collate "C"
  client text collate "C" not null
  cost numeric
  duration_ms integer
  end_user text collate "C"
  finish_reason text collate "C"
  first_token_ms integer
  id text collate "C" not null
  input_tokens bigint
  maker text collate "C"
  model text collate "C" not null
  operation text collate "C" not null
  output_tokens bigint
  price_from text collate "C"
  provider text collate "C" not null
  reasoning_tokens bigint
  tenant text collate "C" not null
  token text collate "C" not null
  unsummed boolean not null default false
  call_record_pkey PRIMARY KEY (tenant, id)
  CREATE INDEX call_record_unsummed ON call_record USING btree (tenant, id) WHERE unsummed

table call_sum
  by text collate "C" not null
  calls bigint not null
  cost numeric not null
  day integer not null
  input bigint not null
  name text collate "C" not null
  output bigint not null
  tenant text collate "C" not null
  uncosted bigint not null
  call_sum_pkey PRIMARY KEY (tenant, by, day, name)
  call_sum_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX call_sum_of_name ON call_sum USING btree (tenant, by, name, day)

table capture_position
  changes bigint not null default 0
  commit_lsn pg_lsn not null
  committed_at bigint
  complete boolean not null default true
  end_lsn pg_lsn not null
  heartbeat timestamp with time zone not null default now()
  last_at bigint not null default 0
  phase text collate "C" not null
  singleton boolean not null default true
  slot text collate "C" not null
  system_identifier text collate "C" not null
  timeline integer not null
  xid bigint
  capture_position_phase_check CHECK (phase = ANY (ARRAY['preparing'::text, 'copying'::text, 'recording'::text]))
  capture_position_pkey PRIMARY KEY (singleton)
  capture_position_singleton_check CHECK (singleton)

table capture_table
  columns jsonb not null
  identity text collate "C" not null
  name text collate "C" not null
  partitions jsonb not null
  publication bigint not null
  relation bigint not null
  capture_table_pkey PRIMARY KEY (name)

table change_actor
  actor bigint not null generated always as identity
  lookup uuid not null
  name text collate "C" not null
  registered xid8 not null default pg_current_xact_id()
  tenant text collate "C" not null
  change_actor_pkey PRIMARY KEY (tenant, actor)
  change_actor_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX change_actor_lookup ON change_actor USING btree (tenant, lookup)
  CREATE INDEX change_actor_registered ON change_actor USING btree (tenant, registered)

type change_batch
  actor_lookups uuid[]
  actor_names text[]
  kind_entities text[]
  kind_lookups uuid[]
  kind_related_entities text[]
  kind_types text[]
  path_entities text[]
  path_names text[]
  path_numbers integer[]
  path_rest integer
  recorder_issuer text
  recorder_lookup uuid
  recorder_name text
  recorder_subject text
  related_documents uuid[]
  related_entities text[]
  related_ids text[]
  related_items integer[]
  related_of integer[]
  way text

table change_delta with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000, fillfactor=50)
  "position" bigint
  actors bigint[] not null storage e
  ats bigint[] not null storage e
  bytes bigint not null default 0
  day integer
  delta bigint not null generated always as identity
  documents uuid[] storage e
  kinds bigint[] not null storage e
  names text[] collate "C" storage e
  recorded bigint
  recorder bigint
  sequences bigint[] not null storage e
  tenant text collate "C" not null
  transaction xid8
  change_delta_pkey PRIMARY KEY (tenant, delta)
  CREATE INDEX change_delta_transaction ON change_delta USING btree (tenant, transaction)

table change_document
  document integer not null
  entity integer not null
  tenant text collate "C" not null
  words text collate "C" not null
  change_document_pkey PRIMARY KEY (tenant, document, entity)
  CREATE INDEX change_document_words ON change_document USING gin (array_to_tsvector(string_to_array((tenant || '/'::text) || replace(words, ' '::text, (' '::text || tenant) || '/'::text), ' '::text))) WITH (gin_pending_list_limit='128')

table change_entry with (autovacuum_vacuum_insert_scale_factor=0.02, autovacuum_analyze_scale_factor=0.02)
  actor bigint not null
  at bigint not null
  context text collate "C"
  document uuid not null
  entity_id text collate "C" not null
  erased text collate "C"
  identity uuid not null
  kind bigint not null
  marks text collate "C"
  name text collate "C"
  path_numbers integer[]
  paths text collate "C" not null
  recorded xid8 default pg_current_xact_id()
  recorded_by bigint
  recorded_on xid8
  related text collate "C"
  schema_version text collate "C"
  sequence bigint not null generated always as identity
  tenant text collate "C" not null
  change_entry_pkey PRIMARY KEY (tenant, at, sequence)
  CREATE UNIQUE INDEX change_entry_identity ON change_entry USING btree (tenant, at, identity)
  CREATE INDEX change_entry_actor ON change_entry USING btree (tenant, actor, at, sequence) INCLUDE (kind)
  CREATE INDEX change_entry_document ON change_entry USING btree (tenant, document, at, sequence) INCLUDE (kind)
  CREATE INDEX change_entry_kind_actor ON change_entry USING btree (tenant, kind, at, sequence) INCLUDE (actor)

table change_erased_document
  document uuid not null
  tenant text collate "C" not null
  change_erased_document_pkey PRIMARY KEY (tenant, document)
  change_erased_document_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_erasure
  begun_at timestamp with time zone not null
  ended_at timestamp with time zone
  entries bigint not null default 0
  erasure uuid not null
  reason text collate "C" not null
  subject bytea not null
  tenant text collate "C" not null
  change_erasure_pkey PRIMARY KEY (tenant, erasure)
  change_erasure_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_folded with (fillfactor=50)
  folds bigint not null
  seal_after timestamp with time zone
  sealed bigint not null default '-1'::integer
  tenant text collate "C" not null
  change_folded_pkey PRIMARY KEY (tenant)
  change_folded_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

type change_input
  actor integer
  at bigint
  context text
  document uuid
  entity_id text
  identity uuid
  kind integer
  marks text
  name text
  path_numbers integer[]
  paths text
  related text
  schema_version text

table change_kind
  entity text collate "C" not null
  kind bigint not null generated always as identity
  lookup uuid not null
  registered xid8 not null default pg_current_xact_id()
  related_entities text[] collate "C" not null
  tenant text collate "C" not null
  type text collate "C" not null
  change_kind_pkey PRIMARY KEY (tenant, kind)
  change_kind_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  change_kind_type_check CHECK (type = ANY (ARRAY['create'::text, 'update'::text, 'delete'::text]))
  CREATE INDEX change_kind_lookup ON change_kind USING btree (tenant, lookup)
  CREATE INDEX change_kind_registered ON change_kind USING btree (tenant, registered)

table change_path
  entity text collate "C" not null
  name text collate "C" not null
  number integer not null
  path uuid not null
  tenant text collate "C" not null
  change_path_pkey PRIMARY KEY (tenant, path)
  change_path_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX change_path_number ON change_path USING btree (tenant, number)

table change_position with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
  at_highs smallint[]
  at_lows integer[]
  ats bigint[] not null storage e
  fingerprints integer[] not null
  first bigint not null
  newest bigint not null
  oldest bigint not null
  placement xid8
  recorded bigint[] not null
  sequence_base bigint
  sequence_offsets integer[]
  sequences bigint[] not null storage e
  snapshot pg_snapshot
  tenant text collate "C" not null
  change_position_pkey PRIMARY KEY (tenant, first)
  change_position_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_receipt
  "position" bigint not null
  body text collate "C" not null
  tenant text collate "C" not null
  change_receipt_pkey PRIMARY KEY (tenant, "position")
  change_receipt_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_recorder
  issuer text collate "C"
  lookup uuid not null
  name text collate "C"
  recorder bigint not null generated always as identity
  subject text collate "C"
  tenant text collate "C" not null
  way text collate "C" not null
  change_recorder_pkey PRIMARY KEY (tenant, recorder)
  change_recorder_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  change_recorder_way_check CHECK (way = ANY (ARRAY['service'::text, 'recorder'::text, 'capture'::text, 'relay'::text]))
  CREATE INDEX change_recorder_lookup ON change_recorder USING btree (tenant, lookup)

table change_rejected
  "position" text collate "C" not null
  id uuid not null
  kept_at timestamp with time zone not null default now()
  reason text collate "C" not null
  recorder text collate "C"
  sealed bytea
  tenant text collate "C" not null
  way text collate "C" not null
  change_rejected_pkey PRIMARY KEY (tenant, id)

table change_related with (autovacuum_vacuum_insert_scale_factor=0.02, autovacuum_analyze_scale_factor=0.02)
  at bigint not null
  document uuid not null
  entity text collate "C" not null
  entity_id text collate "C" not null
  item integer not null
  sequence bigint not null
  tenant text collate "C" not null
  change_related_pkey PRIMARY KEY (tenant, at, sequence, item)
  CREATE INDEX change_related_document ON change_related USING btree (tenant, document, at, sequence)

table change_retention
  held_reason text collate "C"
  held_since bigint
  horizon bigint not null
  keep_days integer
  tenant text collate "C" not null
  change_retention_horizon_check CHECK ((horizon % 86400000::bigint) = 0)
  change_retention_keep_days_check CHECK (keep_days > 0)
  change_retention_pkey PRIMARY KEY (tenant)
  change_retention_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_retention_told
  horizon bigint not null default 0
  next_horizon bigint
  next_until bigint
  reached bigint not null default 0
  tenant text collate "C" not null
  until bigint not null default 0
  change_retention_told_pkey PRIMARY KEY (tenant)
  change_retention_told_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table change_tally with (fillfactor=80)
  actor bigint not null
  bucket bigint not null
  children smallint[] not null
  kind bigint not null
  level smallint not null
  tenant text collate "C" not null
  upto bigint[] not null
  change_tally_pkey PRIMARY KEY (tenant, level, bucket, actor, kind)

table change_way with (fillfactor=50)
  recorded bigint not null
  recorder bigint not null
  tenant text collate "C" not null
  change_way_pkey PRIMARY KEY (tenant, recorder)
  change_way_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table completion_quota with (fillfactor=50)
  input_reserved bigint not null default 0
  input_used bigint not null default 0
  output_reserved bigint not null default 0
  output_used bigint not null default 0
  tenant text collate "C" not null
  completion_quota_input_reserved_check CHECK (input_reserved >= 0)
  completion_quota_output_reserved_check CHECK (output_reserved >= 0)
  completion_quota_pkey PRIMARY KEY (tenant)
  completion_quota_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table completion_request
  attempt uuid not null
  client_id text collate "C" not null
  expires_at timestamp with time zone not null
  fingerprint bytea not null
  key_hash bytea not null
  outcome bytea
  state text not null
  tenant text collate "C" not null
  completion_request_check CHECK ((outcome IS NULL) = (state = 'running'::text))
  completion_request_pkey PRIMARY KEY (tenant, client_id, key_hash)
  completion_request_state_check CHECK (state = ANY (ARRAY['running'::text, 'succeeded'::text, 'failed'::text]))
  completion_request_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX completion_request_expiry ON completion_request USING btree (expires_at)

table completion_reservation with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
  call jsonb
  charged boolean not null default false
  cost numeric
  expires_at timestamp with time zone not null
  input bigint not null
  output bigint not null
  reservation uuid not null
  sent boolean not null default true
  tenant text collate "C" not null
  completion_reservation_pkey PRIMARY KEY (tenant, reservation)
  completion_reservation_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX completion_reservation_open ON completion_reservation USING btree (tenant, expires_at) WHERE NOT charged

table configuration
  description text collate "C"
  key text collate "C" not null
  sealed bytea
  tenant text collate "C" not null
  value text collate "C"
  version bigint not null
  configuration_check CHECK ((value IS NULL) <> (sealed IS NULL))
  configuration_pkey PRIMARY KEY (tenant, key)
  configuration_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table console_link
  client_id text collate "C" not null
  expires_at timestamp with time zone not null
  secret_hash bytea not null
  tenant text collate "C" not null
  console_link_pkey PRIMARY KEY (tenant, secret_hash)
  console_link_tenant_client_id_fkey FOREIGN KEY (tenant, client_id) REFERENCES oauth_client(tenant, client_id)
  console_link_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table console_session
  by_link boolean not null
  checked_at timestamp with time zone
  client_id text collate "C" not null
  created_at timestamp with time zone not null default clock_timestamp()
  expires_at timestamp with time zone not null
  for_keys boolean not null default false
  issuer text
  renewing_until timestamp with time zone
  scopes text[] not null
  sealed_id_token bytea
  sealed_renewal bytea
  secret_hash bytea not null
  subject text
  tenant text collate "C" not null
  tenants text[] collate "C"
  console_session_pkey PRIMARY KEY (tenant, secret_hash)
  console_session_tenant_client_id_fkey FOREIGN KEY (tenant, client_id) REFERENCES oauth_client(tenant, client_id)
  console_session_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX console_session_check ON console_session USING btree (checked_at) WHERE checked_at IS NOT NULL
  CREATE INDEX console_session_client ON console_session USING btree (tenant, client_id, created_at)

table custom_entity
  document text collate "C" not null
  fields jsonb not null
  id text collate "C" not null
  json_schema text collate "C"
  tenant text collate "C" not null
  version bigint not null
  custom_entity_pkey PRIMARY KEY (tenant, id)
  custom_entity_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table custom_instance
  document text collate "C" not null
  fields jsonb not null
  id text collate "C" not null
  tenant text collate "C" not null
  type text collate "C" not null
  version bigint not null
  wide smallint not null default 0
  custom_instance_pkey PRIMARY KEY (tenant, type, id)
  custom_instance_tenant_type_fkey FOREIGN KEY (tenant, type) REFERENCES custom_entity(tenant, id)
  CREATE INDEX custom_instance_map_name ON custom_instance USING btree (tenant, type) WHERE jsonb_typeof(fields -> 'name'::text) = 'object'::text

table database_origin
  relation bigint not null
  singleton boolean not null default true
  system_identifier text collate "C"
  written_by xid8 not null
  database_origin_pkey PRIMARY KEY (singleton)
  database_origin_singleton_check CHECK (singleton)

table delivery_alert with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500)
  counted text collate "C" not null
  subscription text collate "C" not null
  tenant text collate "C" not null
  delivery_alert_pkey PRIMARY KEY (tenant, subscription)
  delivery_alert_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table delivery_attempt
  answer text collate "C"
  at timestamp with time zone not null
  duration integer
  error text collate "C"
  first_position bigint
  kind text collate "C" not null
  last_position bigint
  number bigint not null
  outcome text collate "C" not null
  status integer
  subscription text collate "C" not null
  tenant text collate "C" not null
  delivery_attempt_pkey PRIMARY KEY (tenant, subscription, number)
  delivery_attempt_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE
  CREATE INDEX delivery_attempt_at ON delivery_attempt USING btree (tenant, at)

table delivery_batch with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500)
  "position" bigint not null
  attempts integer not null default 0
  begun_at timestamp with time zone not null
  changes integer not null
  due_at timestamp with time zone not null
  fingerprint integer not null
  first bigint not null
  hashes text[] collate "C" not null default '{}'::text[]
  key uuid not null
  kind text collate "C" not null
  last bigint not null
  receipt text collate "C"
  subscription text collate "C" not null
  taken_at timestamp with time zone
  tenant text collate "C" not null
  until bigint not null
  delivery_batch_pkey PRIMARY KEY (tenant, subscription, kind)
  delivery_batch_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table delivery_manifest
  attempts integer not null default 0
  day text collate "C" not null
  subscription text collate "C" not null
  tenant text collate "C" not null
  delivery_manifest_pkey PRIMARY KEY (tenant, subscription)
  delivery_manifest_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table delivery_object
  changes integer not null
  day text collate "C" not null
  first bigint not null
  last bigint not null
  sha256 text collate "C" not null
  subscription text collate "C" not null
  tenant text collate "C" not null
  delivery_object_pkey PRIMARY KEY (tenant, subscription, day, first, last)
  delivery_object_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table delivery_waiting
  "position" bigint not null
  attempts integer not null
  document uuid not null
  due_at timestamp with time zone not null
  fingerprint integer not null
  parked_at timestamp with time zone
  subscription text collate "C" not null
  tenant text collate "C" not null
  delivery_waiting_pkey PRIMARY KEY (tenant, subscription, "position")
  delivery_waiting_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE
  CREATE INDEX delivery_waiting_document ON delivery_waiting USING btree (tenant, subscription, document, "position") WHERE parked_at IS NULL
  CREATE INDEX delivery_waiting_parked ON delivery_waiting USING btree (tenant, subscription, parked_at) WHERE parked_at IS NOT NULL

table followed_file
  device text collate "C" not null
  head text collate "C" not null
  head_bytes bigint not null
  inode text collate "C" not null
  path text collate "C" not null
  recorded bigint not null
  tenant text collate "C" not null
  followed_file_pkey PRIMARY KEY (tenant, path)
  followed_file_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table found_work with (fillfactor=50)
  fresh_for interval not null default '00:00:00'::interval
  looked_at timestamp with time zone not null default '-infinity'::timestamp with time zone
  questions uuid not null
  tenants jsonb not null default '[]'::jsonb
  found_work_pkey PRIMARY KEY (questions)

table installation
  erasure_key bytea
  erasures bigint not null default 0
  id uuid not null default gen_random_uuid()
  singleton boolean not null default true
  installation_pkey PRIMARY KEY (singleton)
  installation_singleton_check CHECK (singleton)

table job with (fillfactor=70)
  attempt integer not null default 0
  call_began boolean not null default false
  client text collate "C"
  document text collate "C" not null
  fields jsonb not null
  full_document text collate "C"
  full_fields jsonb
  held_until timestamp with time zone
  id text collate "C" not null
  input text collate "C" not null
  last_at bigint
  last_sequence bigint
  place bigint
  queued_at timestamp with time zone not null default now()
  session_id text collate "C"
  since bigint
  snapshot pg_snapshot
  snapshot_on xid8
  stalled integer not null default 0
  status text collate "C" not null
  tenant text collate "C" not null
  type text collate "C" not null
  job_pkey PRIMARY KEY (tenant, id)
  job_status_check CHECK (status = ANY (ARRAY['in_progress'::text, 'success'::text, 'failure'::text, 'skipped'::text]))
  job_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  job_type_check CHECK (type = ANY (ARRAY['AGENT_CHAT'::text, 'EXPORT'::text]))
  CREATE INDEX job_held ON job USING btree (held_until) WHERE status = 'in_progress'::text AND held_until IS NOT NULL
  CREATE INDEX job_of_client ON job USING btree (tenant, client, id) WHERE type = 'EXPORT'::text
  CREATE INDEX job_of_session ON job USING btree (tenant, session_id, place) WHERE status = 'in_progress'::text
  CREATE INDEX job_waiting ON job USING btree (tenant, type, queued_at, id) WHERE status = 'in_progress'::text AND held_until IS NULL

table job_chunk
  bytes bigint not null
  chunk integer not null
  content bytea not null storage e
  job text collate "C" not null
  tenant text collate "C" not null
  job_chunk_pkey PRIMARY KEY (tenant, job, chunk)
  job_chunk_tenant_job_fkey FOREIGN KEY (tenant, job) REFERENCES job(tenant, id) ON DELETE CASCADE

table mail
  attempts integer not null default 0
  content text collate "C" not null
  due_at timestamp with time zone not null default now()
  message_id text collate "C" not null
  queued_at timestamp with time zone not null default now()
  recipient text collate "C" not null
  sent_at timestamp with time zone
  subject text collate "C" not null
  tenant text collate "C" not null
  mail_pkey PRIMARY KEY (tenant, message_id)
  mail_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE INDEX mail_waiting ON mail USING btree (due_at) WHERE sent_at IS NULL

table migration
  checksum text
  name text not null
  number integer not null
  ran_at timestamp with time zone not null default now()
  migration_pkey PRIMARY KEY (number)

table oauth_client
  client_id text collate "C" not null
  confirmed_at timestamp with time zone
  created_at timestamp with time zone not null default now()
  name text not null
  restriction jsonb
  revoked_at timestamp with time zone
  scopes text[] not null
  secret_hash bytea
  tenant text collate "C" not null
  oauth_client_pkey PRIMARY KEY (tenant, client_id)
  oauth_client_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table oauth_signing_key
  created_at timestamp with time zone not null
  kid text not null
  retired_at timestamp with time zone not null
  sealed_key bytea not null
  oauth_signing_key_pkey PRIMARY KEY (kid)

table proof_leaf with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=2000)
  commitments bytea not null storage e
  first bigint not null
  kinds bytea not null
  seeds bytea not null storage e
  tenant text collate "C" not null
  proof_leaf_pkey PRIMARY KEY (tenant, first)
  proof_leaf_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table proof_log
  began timestamp with time zone not null default now()
  check_right boolean
  checked_at timestamp with time zone
  checkpoint text collate "C"
  cosign_after timestamp with time zone
  cosigned bigint not null default 0
  ended timestamp with time zone
  origin text collate "C" not null
  receipt bigint
  signed_at timestamp with time zone
  size bigint not null default 0
  tenant text collate "C" not null
  vkey text collate "C" not null
  proof_log_pkey PRIMARY KEY (tenant, origin)
  proof_log_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
  CREATE UNIQUE INDEX proof_log_current ON proof_log USING btree (tenant) WHERE ended IS NULL

table proof_redaction
  "position" bigint not null
  cover bytea not null
  hashes bytea not null
  hidden integer[] not null
  tenant text collate "C" not null
  proof_redaction_pkey PRIMARY KEY (tenant, "position")
  proof_redaction_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table proof_tile with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500)
  hashes bytea not null storage e
  level integer not null
  tenant text collate "C" not null
  tile bigint not null
  proof_tile_pkey PRIMARY KEY (tenant, level, tile)
  proof_tile_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table routine
  hash text not null
  name text not null
  signature text not null
  routine_pkey PRIMARY KEY (signature)

table routine_set
  applied_at timestamp with time zone not null default now()
  hash text not null
  replaced_at timestamp with time zone
  version integer not null default 1
  routine_set_pkey PRIMARY KEY (hash)
  CREATE UNIQUE INDEX routine_set_current ON routine_set USING btree ((true)) WHERE replaced_at IS NULL

table saved_view
  document text collate "C" not null
  fields jsonb not null
  id text collate "C" not null
  tenant text collate "C" not null
  version bigint not null
  saved_view_pkey PRIMARY KEY (tenant, id)
  saved_view_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table schema_change
  announced_at timestamp with time zone not null
  newest integer not null
  routines_hash text not null
  singleton boolean not null default true
  schema_change_pkey PRIMARY KEY (singleton)
  schema_change_singleton_check CHECK (singleton)

table schema_process
  newest integer not null
  process uuid not null
  routines_hash text not null
  seen_at timestamp with time zone not null
  schema_process_pkey PRIMARY KEY (process)

table subscription
  document text collate "C" not null
  fields jsonb not null
  id text collate "C" not null
  maker text collate "C" not null
  sealed bytea
  tenant text collate "C" not null
  version bigint not null
  subscription_pkey PRIMARY KEY (tenant, id)
  subscription_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table subscription_replay with (fillfactor=50)
  "position" bigint not null
  fingerprint integer not null
  subscription text collate "C" not null
  tenant text collate "C" not null
  until bigint not null
  subscription_replay_pkey PRIMARY KEY (tenant, subscription)
  subscription_replay_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table subscription_state with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500)
  "position" bigint not null
  attempts bigint not null default 0
  cursor text collate "C" not null
  delivered bigint not null default 0
  dropped bigint not null default 0
  due_at timestamp with time zone
  expired bigint not null default 0
  failing_since timestamp with time zone
  fingerprint integer not null
  held_until timestamp with time zone
  holder uuid
  last_delivery text collate "C"
  last_error text collate "C"
  matched bigint not null default 0
  parked bigint not null default 0
  reason text collate "C"
  rest_until timestamp with time zone
  skipped bigint not null default 0
  slowed integer not null default 0
  state text collate "C" not null
  subscription text collate "C" not null
  tenant text collate "C" not null
  unreachable integer not null default 0
  waiting bigint not null default 0
  subscription_state_pkey PRIMARY KEY (tenant, subscription)
  subscription_state_tenant_subscription_fkey FOREIGN KEY (tenant, subscription) REFERENCES subscription(tenant, id) ON DELETE CASCADE

table tenant
  created_at timestamp with time zone not null default now()
  tenant text collate "C" not null
  tenant_name CHECK (tenant ~ '^[a-z][a-z0-9]+$'::text AND length(tenant) <= 63)
  tenant_pkey PRIMARY KEY (tenant)

table tenant_rate with (fillfactor=50)
  key_id text collate "C" not null default ''::text
  refilled_at timestamp with time zone not null
  tenant text collate "C" not null
  tokens double precision not null
  tenant_rate_pkey PRIMARY KEY (tenant, key_id)
  tenant_rate_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)

table usage_count with (fillfactor=50)
  amount bigint not null
  day integer not null
  measure text collate "C" not null
  tenant text collate "C" not null
  usage_count_measure_check CHECK (measure = ANY (ARRAY['entries'::text, 'bytes'::text, 'requests'::text, 'inputTokens'::text, 'outputTokens'::text]))
  usage_count_pkey PRIMARY KEY (tenant, day, measure)
  usage_count_tenant_fkey FOREIGN KEY (tenant) REFERENCES tenant(tenant)
function access_kinds_add(known json, added json) returns json language sql immutable cost 100 body 4c2bd78a229feadf
function budget_amount(amount numeric, in_tokens boolean) returns text language sql immutable cost 100 body 03f33cb3c99c0747
function budget_counts(by text, name text, call jsonb) returns boolean language sql immutable cost 100 body 83d2304a4d860100
function budget_days(period text, day integer, OUT first integer, OUT last integer) returns record language sql immutable cost 100 body c163f7ef740ee04f
function budget_decide(of_tenant text, call jsonb, is_bounded boolean, input bigint, output bigint, OUT outcome text, OUT budget text, OUT bound text, OUT rest text) returns record language plpgsql cost 100 body 7ed6d93d5cf1ff67
function budget_figures(of_tenant text, by text, name text, period text, in_tokens boolean, day integer) returns TABLE(first integer, last integer, spent numeric, held numeric) language plpgsql cost 100 rows 1000 body 144466dd7d8767fa
function budget_held(of_tenant text, by text, name text, in_tokens boolean, first integer, last integer) returns numeric language plpgsql cost 100 body 0453b214c259f632
function budget_spent(of_tenant text, by text, name text, in_tokens boolean, first integer, last integer) returns numeric language plpgsql cost 100 body 96fa8e55e7e167ba
function call_bound(price jsonb, input bigint, output bigint) returns numeric language plpgsql immutable cost 100 body 4ebcb9e82e2c2e2a
function call_change(sign integer, at timestamp with time zone, client text, maker text, agent text, model text, provider text, end_user text, input_tokens bigint, output_tokens bigint, cost numeric) returns jsonb language sql immutable cost 100 body 5f213090798404c1
function call_record_add(of_tenant text, id text, at timestamp with time zone, operation text, token text, provider text, model text, client text, maker text, agent text, end_user text, input_tokens bigint, cached_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint, first_token_ms integer, duration_ms integer, finish_reason text, cause text, cost numeric, price_from text) returns void language plpgsql cost 100 body e856979f70e23688
function call_record_take(of_tenant text, ids text[]) returns jsonb language plpgsql cost 100 body 08f60f142e219018
function call_record_write(of_tenant text, calls jsonb) returns void language plpgsql cost 100 body 3d4d30f4b40645d4
function call_reserves_quota(call jsonb) returns boolean language sql immutable cost 100 body 7008ff1ea000805a
function call_sum_add(of_tenant text, changes jsonb) returns void language plpgsql strict cost 100 body ba4b1305814c1c8c
function call_sum_others(of_tenant text, changes jsonb) returns text[] language plpgsql cost 100 body c958d48c9f93d300
function call_sum_records(of_tenant text) returns void language plpgsql cost 100 body 99516e48898b1735
function canonical_json(value jsonb, wanted integer) returns text language plpgsql immutable parallel safe cost 100 body 2af39554883c5756
function canonical_number(number numeric) returns text language plpgsql immutable parallel safe cost 100 body 9c2393ea77f21c7e
function canonical_string(value text) returns text language plpgsql immutable parallel safe cost 100 body 72440f4be9a78d39
function change_cell(level integer) returns bigint language sql immutable parallel safe cost 100 body 5915b3a7a0a95cba
function change_count(of_tenant text, of_actors bigint[], of_kinds bigint[], moments bigint[], before bigint, split text) returns TABLE(key bigint, range integer, entries bigint) language plpgsql stable cost 100 rows 1000 body 66cd317261879525
function change_count_parts(of_tenant text, splits text[], actor_sets text[], kind_sets text[], moment_sets text[], befores bigint[], first_places integer[]) returns TABLE(place integer, key bigint, entries bigint) language plpgsql stable cost 100 rows 1000 body d169d4fbce1d0538
function change_count_types(of_tenant text, splits text[], actor_sets text[], kind_sets text[], moment_sets text[], befores bigint[], first_places integer[]) returns TABLE(type text, place integer, entries bigint) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body 9835378cf4319eb1
function change_dense() returns bigint language sql immutable parallel safe cost 100 body 03bbf398f4e82b8f
function change_dense_pairs() returns bigint language sql immutable parallel safe cost 100 body 885c9acf5718cf96
function change_descend(of_tenant text, of_actor bigint, of_kind bigint, skip bigint, few bigint, OUT moment bigint, OUT newer bigint) returns record language plpgsql stable cost 100 body 4b7f1c4df89d1679
function change_document(entity_id text) returns uuid language sql stable parallel safe cost 100 body 84fdae6af234517d
function change_export_take(source refcursor, most bigint, OUT lines text, OUT entries integer, OUT last_at bigint, OUT last_sequence bigint) returns SETOF record language plpgsql cost 100 rows 1000 body 4ecb74550f879d9d
function change_extent(of_tenant text, since bigint, kinds bigint[]) returns TABLE(entries bigint, pending bigint) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body 5bda1860f4148e65
function change_facet_values(of_tenant text, splits text[], actor_sets text[], kind_sets text[], moment_sets text[], befores bigint[], first_places integer[], field text, counted_keys bigint[], counted_entries bigint[], size bigint) returns TABLE(total bigint, value text, count bigint) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body 1e78671224dc3950
function change_fold(of_tenant text, most bigint DEFAULT 500000) returns bigint language plpgsql cost 100 set plan_cache_mode=force_custom_plan set enable_mergejoin=off set enable_sort=off set jit=off body 691e34e99de1bd4f
function change_fold_lock(of_tenant text) returns void language plpgsql cost 100 body 2a7c58b7f4296106
function change_fold_portions(of_tenant text, most bigint, at_once bigint) returns TABLE(first bigint, last bigint) language plpgsql cost 100 rows 1000 set plan_cache_mode=force_custom_plan set jit=off body 06d74720533f2e01
function change_hidden(path text, sides jsonb, hidden text, levels integer) returns jsonb language plpgsql immutable parallel safe cost 100 body 8cba33e5fc325837
function change_hidden_value(path text, value jsonb, hidden text, levels integer) returns jsonb language plpgsql immutable parallel safe cost 100 body ab42489a6cc54a6c
function change_horizon(of_tenant text, now bigint) returns bigint language plpgsql stable cost 100 body e140a78e29e3c753
function change_lineage(of_tenant text) returns text language sql stable cost 100 body 6d2fe029d80f9771
function change_newest(of_tenant text, now bigint, actor_sets text[], kind_sets text[], since bigint, before bigint, skip bigint, size bigint, span bigint) returns SETOF change_entry language plpgsql stable cost 100 rows 50 body 2adec0b0eb773c3f
function change_oldest(of_tenant text, actors bigint[], kinds bigint[], since bigint, before bigint) returns TABLE(oldest bigint, decided boolean) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body 0ff69fc93833cecd
function change_page(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[], actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8, recent bigint, lineage text) returns TABLE(page text) language plpgsql stable cost 100 rows 1000 body 812dd439e2804f22
function change_page_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[], actors bigint[], documents uuid[], related_documents uuid[], related_entities text[], ids_from text, ids_before text, ids_like text, skip bigint, size bigint, names_since xid8, recent bigint, lineage text) returns TABLE(page text) language plpgsql stable cost 100 rows 1000 body ea1c0926dc79a970
function change_page_entry(at bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text, erased text) returns text language sql immutable parallel safe cost 100 body f70fd5c26654b68d
function change_page_paths(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[], actors bigint[], entities text[], names_like text[], skip bigint, size bigint, max_total bigint, names_since xid8, recent bigint, lineage text) returns TABLE(page text) language plpgsql stable cost 100 rows 1000 body af75cd90d9441c45
function change_path_name(path text) returns text language sql immutable parallel safe cost 100 body 6b45907d7ea582df
function change_path_names(of_tenant text, entities text[], names_like text[], only_shared boolean) returns TABLE(number integer, entity text, name text, is_shared boolean) language plpgsql stable cost 100 rows 1000 body b3a2083dae3b3aed
function change_paths(paths text) returns jsonb language plpgsql immutable cost 100 body 4c79e66ffd801e93
function change_placement(of_tenant text) returns xid8 language sql immutable cost 100 body d2c21faddb41776e
function change_places(of_tenant text, actors bigint[], kinds bigint[], since bigint, before bigint, most bigint, OUT ats bigint[], OUT sequences bigint[]) returns record language plpgsql stable cost 100 body 17db2c4175d26506
function change_position_fingerprint() returns integer language sql cost 100 body ff86cc47005b605f
function change_position_give(of_tenant text, most bigint DEFAULT 200000) returns bigint language plpgsql cost 100 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off body a014158607c39201
function change_position_mark(of_tenant text, begin_at bigint, deltas bigint[], befores bigint[], places tid[]) returns bigint language plpgsql cost 100 set plan_cache_mode=force_generic_plan set enable_seqscan=off set enable_indexscan=off set enable_bitmapscan=off set jit=off body a9b42d08495438c8
function change_position_write(of_tenant text, begin_at bigint, ats bigint[], sequences bigint[], recorded bigint[], fingerprints integer[], snapshot pg_snapshot, placement xid8) returns bigint language plpgsql cost 100 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off body ab995f8086b2da90
function change_read(of_tenant text, now bigint, sinces bigint[], befores bigint[], selection_ends integer[], actor_sets text[], kind_sets text[], skip bigint, size bigint, names_since xid8, recent bigint, lineage text) returns TABLE(total bigint, current boolean, at bigint, sequence bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text, erased text) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body 57ea6e582d84516d
function change_read_documents(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[], actors bigint[], documents uuid[], related_documents uuid[], related_entities text[], ids_from text, ids_before text, ids_like text, skip bigint, size bigint, names_since xid8, recent bigint, lineage text) returns TABLE(total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text, erased text) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body e859915ddba12563
function change_read_paths(of_tenant text, now bigint, since bigint, before bigint, kinds bigint[], actors bigint[], entities text[], names_like text[], skip bigint, size bigint, max_total bigint, names_since xid8, recent bigint, lineage text) returns TABLE(total bigint, current boolean, at bigint, kind bigint, actor bigint, entity_id text, name text, schema_version text, related text, paths text, erased text) language plpgsql stable cost 100 rows 1000 set enable_sort=off set enable_incremental_sort=off body 7243eb9c79823e1a
function change_rename(of_tenant text, old_lookup uuid, new_lookup uuid, replacement text, recorders bigint[]) returns void language plpgsql cost 100 body c70201b0f27d9c55
function change_search_costs() returns void language plpgsql stable cost 100 body f795fc0ffd9b460c
function change_seek(of_tenant text, actor_sets text[], kind_sets text[], wanted bigint, oldest bigint, before bigint, total bigint, OUT moment bigint, OUT newer bigint) returns record language plpgsql stable cost 100 body 3803a237610c2146
function change_short_id() returns integer language sql immutable parallel safe cost 100 body d4720d094730e84b
function change_snapshot(of_tenant text, now bigint, names_since xid8, recent bigint, lineage text) returns TABLE(horizon bigint, current boolean) language plpgsql stable cost 100 rows 1000 body 958ff9da24f272f8
function change_summary(of_tenant text, now bigint) returns TABLE(entries bigint, oldest bigint, newest bigint) language plpgsql stable cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off set enable_sort=off set enable_incremental_sort=off body d6641c8b3bb80176
function change_total(of_tenant text, actor_sets text[], kind_sets text[], since bigint, before bigint) returns bigint language plpgsql stable cost 100 body e6df1dc496ab4f4e
function completion_quota_apply(of_tenant text, settled uuid[], input_tokens bigint[], output_tokens bigint[], wanted uuid[], input_bounds bigint[], output_caps bigint[], lease interval, least_output bigint, input_limit bigint, output_limit bigint, calls jsonb, begun jsonb[], bounded boolean[]) returns TABLE(outcome text, granted bigint, budget text, bound text, rest text) language plpgsql cost 100 rows 1000 body c60203d74621dd9d
function completion_quota_charge_expired(of_tenant text) returns jsonb language plpgsql cost 100 body e7373fd9412af54a
function completion_quota_decide(quota completion_quota, input_bound bigint, output_cap bigint, least_output bigint, input_limit bigint, output_limit bigint, OUT outcome text, OUT granted bigint) returns record language plpgsql immutable cost 100 body 6f224c2442358a74
function completion_quota_reserve_sent(of_tenant text, new_reservation uuid, new_input bigint, new_output bigint, lease interval, input_limit bigint, output_limit bigint, new_call jsonb) returns boolean language plpgsql cost 100 body 85cbcbfbb451e062
function completion_quota_send(of_tenant text, reservations uuid[], leases interval[]) returns SETOF uuid language plpgsql cost 100 rows 1000 body 15c97389a3f0fdfa
function completion_quota_settle(of_tenant text, settled uuid, id text, at timestamp with time zone, operation text, token text, provider text, model text, client text, maker text, agent text, end_user text, input_tokens bigint, cached_tokens bigint, cache_write_tokens bigint, output_tokens bigint, reasoning_tokens bigint, first_token_ms integer, duration_ms integer, finish_reason text, cause text, cost numeric, price_from text) returns boolean language plpgsql cost 100 body 125d3b016c70388e
function csv_field(value text) returns text language sql immutable parallel safe cost 100 body 0fa908629550688e
function decimal_parts(number numeric, OUT digits text, OUT exponent integer) returns record language plpgsql immutable parallel safe cost 100 body fa32e2e8f7481834
function document_values(document jsonb, keys jsonpath[], places jsonpath[]) returns jsonb language plpgsql immutable parallel safe cost 1000 body 8cdbc448828feb4f
function found_work(of_questions uuid, of_tables text[], conditions text[]) returns jsonb language plpgsql cost 100 body 24b0667d7bd7ab16
function index_bytes(of_index regclass) returns bigint language sql cost 100 body 6fa7949c4a71a4ed
function inverted_bytes(bytes bytea) returns bytea language sql immutable strict parallel safe cost 100 body 1f38176dc5e28ccd
function path_numbers_left(entries text[], without_room integer[], rest integer) returns text[] language plpgsql immutable cost 100 set plan_cache_mode=force_generic_plan set enable_nestloop=off set jit=off body 3d03b876195a2386
function path_register(of_tenant text, numbers integer[], entities text[], names text[], rest integer) returns integer[] language plpgsql cost 100 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off body 4cd111896acd0dac
function receipt_write(of_tenant text, body text) returns bigint language plpgsql cost 100 body 04afac3482dc522d
function record_entries(for_tenant text, now bigint, entries change_input[], batch change_batch) returns TABLE(horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean) language plpgsql cost 100 rows 1000 body 9856b9f8f760bd64
function record_entries_numbered(of_tenant text, now bigint, entries change_input[], batch change_batch, numbers bigint[]) returns TABLE(horizon bigint, complete boolean, at bigint, identity uuid, has_erased boolean) language plpgsql cost 100 rows 1000 set plan_cache_mode=force_generic_plan set enable_seqscan=off set jit=off body b10d6f1dd959fa76
function record_numbers(wanted integer) returns bigint[] language sql immutable cost 100 body 6b49cff8b41e2ca7
function rows_of_all(query text, of_tables text[]) returns SETOF json language plpgsql cost 100 rows 1000 body ca80ea07f4898abc
function sort_key(value jsonb, descending boolean) returns bytea language plpgsql immutable parallel safe cost 1000 body e2cd2f3d17ca8632
function tenant_rate_take(of_tenant text, of_key text, rate double precision, portion integer) returns TABLE(granted integer, seconds double precision) language plpgsql cost 100 rows 1000 body 57e6c3b64d38694b
function tenants_in(of_table regclass, condition text) returns SETOF text language plpgsql cost 100 rows 1000 body 3329535d879fac0f
function tenants_with(of_tables text[], conditions text[]) returns TABLE(question integer, tenant text) language sql cost 100 rows 1000 body b055c4f45df257c9
function text_parts(value text, most integer) returns SETOF text language plpgsql immutable parallel safe cost 100 rows 1000 body 8191eb869857c24a
function usage_day(moment timestamp with time zone) returns integer language sql immutable cost 100 body 4fc00931d916a2d5
