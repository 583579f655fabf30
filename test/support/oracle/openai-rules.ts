// What docs/openai.md says of a request that is passed through with an own key, written once more. Members are walked as
// values: nothing of the service's own reading is used.

type Body = Readonly<Record<string, unknown>>;
type Operation = 'chat/completions' | 'responses';

export interface Judgement {
  /** The paths of all members that are refused. Empty: the request passes. */
  readonly refused: ReadonlySet<string>;
  /** The body that goes out, for a request without blanks. */
  readonly sent: string;
  readonly leftOut: readonly string[];
}

const kept = ['previous_response_id', 'conversation', 'prompt', 'prediction'];
const idsOfKept = [
  ...['file_id', 'file_ids', 'file_url', 'container', 'container_id', 'vector_store_id', 'vector_store_ids'],
  ...['previous_response_id', 'comparison_response_id', 'item_reference', 'approval_request_id', 'connector_id'],
  ...['tunnel_id', 'skill_id'],
];
const namesOfClients = ['parameters', 'schema', 'metadata', 'client_metadata', 'logit_bias', 'input_schema'];
const hosted = [
  ...['web_search', 'file_search', 'code_interpreter', 'image_generation', 'mcp', 'computer', 'local_shell', 'shell'],
  ...['apply_patch', 'tool_search'],
];
const items = [
  ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'reasoning'],
  'compaction',
];
/** The types of parts, and where each has its data. */
const parts: Record<Operation, Record<string, { member?: string; inner?: string; isImage?: boolean }>> = {
  'chat/completions': {
    text: {},
    refusal: {},
    image_url: { member: 'image_url', inner: 'url', isImage: true },
    input_audio: { member: 'input_audio', inner: 'data' },
    file: { member: 'file', inner: 'file_data' },
  },
  responses: {
    input_text: {},
    output_text: {},
    refusal: {},
    summary_text: {},
    reasoning_text: {},
    input_image: { member: 'image_url', isImage: true },
    input_file: { member: 'file_data' },
    input_audio: { member: 'input_audio', inner: 'data' },
  },
};

function isObject(value: unknown): value is Body {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Judges a request. `model`: the vendor's name of it. */
export function judge(operation: Operation, body: Body, model: string): Judgement {
  const refused = new Set<string>();
  const refuse = (...path: (string | number)[]) => void refused.add(path.join('.'));

  const walk = (value: unknown, path: (string | number)[]): void => {
    if (Array.isArray(value)) for (const [index, member] of value.entries()) walk(member, [...path, index]);
    if (!isObject(value)) return;
    for (const [name, member] of Object.entries(value)) {
      if (idsOfKept.includes(name) && member !== null) refuse(...path, name);
      if (!namesOfClients.includes(name)) walk(member, [...path, name]);
    }
  };
  walk(body, []);
  for (const name of kept) if ((body[name] ?? null) !== null) refuse(name);
  if ((body.background ?? false) !== false) refuse('background');
  if (body.store === true) refuse('store');
  if (isObject(body.audio) && isObject(body.audio.voice)) refuse('audio.voice');

  const readPart = (part: unknown, path: (string | number)[]): void => {
    if (!isObject(part)) return;
    const known = parts[operation][String(part.type)];
    if (known === undefined) {
      refuse(...path, 'type');
      return;
    }
    const { member, inner, isImage = false } = known;
    if (member === undefined) return;
    const holder = inner === undefined ? part[member] : isObject(part[member]) ? part[member][inner] : undefined;
    const pattern = isImage ? /^data:image\// : /^(?:data:|[\w+/=\s-]*$)/;
    if (typeof holder === 'string' && pattern.test(holder)) return;
    refuse(...path, member, ...(inner === undefined ? [] : [inner]));
  };
  const readContent = (value: unknown, path: (string | number)[]): void => {
    for (const [index, part] of listOf(value).entries()) readPart(part, [...path, index]);
  };
  if (operation === 'chat/completions') {
    for (const [index, message] of listOf(body.messages).entries()) {
      if (!isObject(message)) continue;
      if (isObject(message.audio) && (message.audio.id ?? null) !== null) refuse('messages', index, 'audio.id');
      readContent(message.content, ['messages', index, 'content']);
    }
    if ((body.stream_options ?? null) !== null && body.stream !== true) refuse('stream_options');
    if ((body.n ?? null) !== null && !(Number(body.n) >= 1 && Number(body.n) <= 8)) refuse('n');
  } else {
    if ((body.input ?? null) === null) refuse('input');
    if ((body.instructions ?? null) !== null && typeof body.instructions !== 'string') refuse('instructions');
    for (const [index, item] of listOf(body.input).entries()) {
      if (!isObject(item)) continue;
      const type = item.type ?? ((item.role ?? null) === null ? 'item_reference' : 'message');
      if (!items.includes(String(type))) refuse('input', index, 'type');
      for (const name of ['content', 'output', 'summary']) readContent(item[name], ['input', index, name]);
    }
  }
  const caps = operation === 'responses' ? ['max_output_tokens'] : ['max_completion_tokens', 'max_tokens'];
  const given = caps.filter((name) => (body[name] ?? null) !== null);
  for (const name of given) if (!(Number(body[name]) >= 1 && Number(body[name]) <= 1_000_000)) refuse(name);
  if (given.length === 2) refuse('max_tokens');

  const isHosted = (tool: unknown, path: (string | number)[]): boolean => {
    if (!isObject(tool)) return false;
    const type = String(tool.type);
    if (type === 'namespace') {
      return listOf(tool.tools)
        .map((one, index) => isHosted(one, [...path, 'tools', index]))
        .some(Boolean);
    }
    if (type === 'function' || type === 'custom') return false;
    if (!hosted.some((start) => type.startsWith(start))) refuse(...path, 'type');
    return true;
  };
  const tools = listOf(body.tools);
  const left = tools.map((tool, index) => isHosted(tool, ['tools', index]));
  const leftOut = new Set(tools.filter((_, index) => left[index]).map((tool) => String(isObject(tool) && tool.type)));
  const hasNone = tools.length > 0 && left.every(Boolean);
  const choice = body.tool_choice ?? undefined;
  if (hasNone && choice !== undefined && choice !== 'auto' && choice !== 'none') refuse('tool_choice');
  if (isObject(choice)) {
    if (!['function', 'custom', 'allowed_tools'].includes(String(choice.type))) refuse('tool_choice.type');
    const inner = isObject(choice.allowed_tools) ? choice.allowed_tools : choice;
    const path = isObject(choice.allowed_tools) ? ['tool_choice.allowed_tools.tools'] : ['tool_choice.tools'];
    for (const [index, tool] of listOf(inner.tools).entries()) {
      const type = isObject(tool) ? (tool.type ?? 'function') : undefined;
      if (choice.type === 'allowed_tools' && type !== 'function' && type !== 'custom') refuse(...path, index, 'type');
    }
  }

  const sent: Record<string, unknown> = { ...body, model };
  if (hasNone) for (const name of ['tools', 'tool_choice', 'parallel_tool_calls']) delete sent[name];
  else if (leftOut.size > 0) sent.tools = tools.filter((_, index) => !left[index]);
  if ((body.web_search_options ?? null) !== null) {
    delete sent.web_search_options;
    leftOut.add('web_search');
  }
  const added: Record<string, unknown> = {};
  if ('store' in body) sent.store = false;
  else added.store = false;
  if (operation === 'chat/completions' && body.stream === true) {
    const asked = { include_usage: true };
    if (!('stream_options' in body)) added.stream_options = asked;
    else if (!isObject(body.stream_options)) sent.stream_options = asked;
    else if ('include_usage' in body.stream_options) sent.stream_options = { ...body.stream_options, ...asked };
    else sent.stream_options = { ...asked, ...body.stream_options };
  }
  return { refused, sent: JSON.stringify({ ...added, ...sent }), leftOut: [...leftOut] };
}
