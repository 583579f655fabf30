import { AnnalsError } from '../../core/errors.ts';
import type { InputBound } from '../../providers/call-ledger.ts';
import { openaiLimits } from './limits.ts';
import { Members, refused } from './members.ts';

/** A validated request of `POST /responses`, ready to pass on. */
export interface ResponseRequest {
  readonly body: Readonly<Record<string, unknown>>;
  readonly stream: boolean;
  readonly user: string | undefined;
  readonly maxTokens: number | undefined;
  /** The distinct types of hosted tools, which are left out because they would bypass the quota and the records. */
  readonly leftOut: readonly string[];
  /** Upper bound of the input; undefined if unknown, because of a file. */
  readonly inputBound: InputBound | undefined;
}

const taken = [
  'model',
  'input',
  'instructions',
  'max_output_tokens',
  'temperature',
  'top_p',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'reasoning',
  'include',
  'truncation',
  'stream',
  'stream_options',
  'user',
];
const hints = [
  'metadata',
  'service_tier',
  'prompt_cache_key',
  'prompt_cache_retention',
  'safety_identifier',
  'client_metadata',
];
const isFalse = (value: unknown) => value === false;
const isZero = (value: unknown) => value === 0;

/** Parses a request. Throws validation_violation naming the member, and payload_too_large. */
export function readResponseRequest(content: unknown): ResponseRequest {
  const members = new Members(content, '');
  members.refuseOthers(taken, {
    ...Object.fromEntries(hints.map((name) => [name, () => true])),
    store: isFalse,
    background: isFalse,
    top_logprobs: isZero,
  });
  const user = members.name('user', openaiLimits.userCharacters);
  const found = { images: 0, imageBytes: 0, files: 0 };
  const input = inputOf(members, found);
  members.text('instructions');
  const { tools, leftOut } = toolsOf(members);
  const choice = members.get('tool_choice');
  if (typeof choice === 'object') new Members(choice, 'tool_choice').one('type', ['function', 'custom']);
  if (choice === 'required' && tools?.length === 0) throw refused('tool_choice', 'needs a tool that is not left out');
  const { model: _, user: _user, max_output_tokens: _cap, ...rest } = members.plain();
  const passed = Object.entries(rest).filter(([name]) => taken.includes(name));
  const stream = members.flag('stream') ?? false;
  const body = { ...Object.fromEntries(passed), input, ...(tools && { tools }), stream, store: false };
  const textBytes = Buffer.byteLength(JSON.stringify(body)) - found.imageBytes;
  if (textBytes > openaiLimits.textBytes) {
    throw new AnnalsError(
      'payload_too_large',
      `The texts of a request must have at most ${openaiLimits.textBytes} bytes together.`,
    );
  }
  return {
    body,
    stream,
    user,
    maxTokens: members.whole('max_output_tokens', 1_000_000),
    leftOut,
    inputBound: found.files > 0 ? undefined : { tokens: textBytes + perCall, images: found.images },
  };
}

/** The JSON around texts is longer than what a vendor adds to them. */
const perCall = 64;

function inputOf(members: Members, found: { images: number; imageBytes: number; files: number }): unknown {
  const input = members.get('input');
  if (input === undefined) throw refused('input', 'is required');
  if (typeof input === 'string') return members.neededText('input');
  if (!Array.isArray(input)) throw refused('input', 'must be a string or a list');
  const list = members.list('input', openaiLimits.items) ?? [];
  for (const [index, value] of list.entries()) {
    const item = new Members(value, `input.${index}`);
    // Without a type it is a message, or else a reference.
    const type = item.get('type') ?? (item.get('role') === undefined ? 'item_reference' : 'message');
    if (type === 'item_reference') throw refused(item.at('type'), 'names what is stored: nothing is');
    for (const name of ['content', 'output']) {
      const parts = item.get(name);
      if (Array.isArray(parts)) {
        for (const [place, part] of parts.entries()) checkPart(new Members(part, item.at(`${name}.${place}`)), found);
      } else if (typeof parts === 'object') {
        checkPart(new Members(parts, item.at(name)), found);
      }
    }
  }
  return list;
}

function checkPart(part: Members, found: { images: number; imageBytes: number; files: number }): void {
  if (part.get('file_id') !== undefined) throw refused(part.at('file_id'), 'names what is stored: nothing is');
  if (part.get('file_url') !== undefined) throw refused(part.at('file_url'), 'is not supported: send file_data');
  if (part.get('type') === 'input_file') found.files += 1;
  // Of an image, or of a screenshot.
  const url = part.get('type') === 'input_image' ? part.neededText('image_url') : part.text('image_url');
  if (url === undefined) return;
  if (!url.startsWith('data:image/')) throw refused(part.at('image_url'), 'must be a data: URL of an image');
  found.images += 1;
  found.imageBytes += url.length;
}

function toolsOf(members: Members) {
  const tools = members.list('tools', openaiLimits.tools)?.map((tool, index) => new Members(tool, `tools.${index}`));
  const leftOut = new Set((tools ?? []).filter((tool) => !isOwnTool(tool)).map(typeOf));
  return { tools: tools?.filter(isOwnTool).map((tool) => tool.plain()), leftOut: [...leftOut] };
}

/** Named in a header, which restricts the characters. */
function typeOf(tool: Members): string {
  const type = tool.neededText('type');
  if (!/^[\w.-]{1,64}$/.test(type)) throw refused(tool.at('type'), 'must be the name of a type');
  return type;
}

/** Whether the client runs the tool. A namespace is a group of tools. */
function isOwnTool(tool: Members): boolean {
  const type = tool.neededText('type');
  if (type !== 'namespace') return type === 'function' || type === 'custom';
  const tools = tool.list('tools', openaiLimits.tools) ?? [];
  return tools.every((member, index) => isOwnTool(new Members(member, tool.at(`tools.${index}`))));
}
