import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { anthropicLimits } from '../../../src/desk/anthropic/limits.ts';
import { perCallOfOthers } from '../../../src/desk/completions/input-bound.ts';
import { perCall } from '../../../src/desk/formats/passed-request.ts';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { randomJson } from '../../support/oracle/random-json.ts';
import { trials } from '../../support/oracle/trials.ts';
import { setProviderToken } from '../../support/server/completions.ts';
import { vendorSecret } from '../../support/vendor/vendor-server.ts';
import { startOpenai } from '../openai/openai-server.ts';

const { vendor, server, tenantWithKeys } = closeAfterAll(await startOpenai());
await tenantWithKeys('acme');
const token = await server.token('acme');
const random = new Random();
const operations = ['messages', 'messages/count_tokens'] as const;
const needed = '"max_tokens":50,"messages":[{"role":"user","content":"Hello"}]';

beforeEach(() => {
  vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  vendor.requests.length = 0;
});

interface Sent {
  path?: string;
  by?: string;
  tenant?: string;
  headers?: Record<string, string>;
}

async function send(
  body: string | Uint8Array<ArrayBuffer>,
  { path = 'messages', by = token, tenant = 'acme', headers }: Sent = {},
) {
  const response = await server.call(`/anthropic/${tenant}/v1/${path}`, {
    method: 'POST',
    token: by,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await response.text();
  const error = response.ok ? undefined : JSON.parse(text);
  return { status: response.status, headers: response.headers, text, error };
}

const textOf = (members = '', model = 'claude-m') =>
  `{"model":"${model}",${needed}${members === '' ? '' : `,${members}`}}`;
const withBlock = (block: string) =>
  `{"model":"claude-m","max_tokens":50,"messages":[{"role":"user","content":[${block}]}]}`;
const sentText = () => vendor.requests.at(-1)?.bodyText ?? '';

describe('bytes', () => {
  test.each(operations)('of a request of %s go out as they came, with its query', async (path) => {
    for (let trial = 0; trial < trials(10); trial += 1) {
      const stream = random.below(2) === 1 ? '"stream":true,' : '';
      const text = `\n{ "first" : ${randomJson(random)} , ${stream}"mod\\u0065l" : "claude-m" , "max_tok\\u0065ns":5e1,"messages":[{"role":"user","content":"\\u0048i"}],\n"last":${randomJson(random)} }\n`;
      const query = random.pick(['', '?beta=true', '?beta=true&a=%20b']);
      const { status } = await send(text, { path: `${path}${query}` });
      expect(status, text).toBe(200);
      expect(sentText()).toBe(text);
      expect(vendor.requests.at(-1)?.url).toBe(`/v1/${path}${query}`);
    }
  });

  test('of the name of a model with its provider are replaced, and nothing else', async () => {
    const text = textOf('"a": 1.10', 'anthropic/claude-m');
    expect((await send(text)).status).toBe(200);
    expect(sentText()).toBe(text.replace('anthropic/', ''));
  });

  test('of an answer come back as they were sent, plain and compressed', async () => {
    for (const encoding of [undefined, 'gzip']) {
      const answer = ` { "type":"message", "made_up" : ${randomJson(random)}, "content":[ ${randomJson(random)} ]}\n`;
      const headers = { 'content-type': 'application/json', ...(encoding && { 'content-encoding': encoding }) };
      const bytes = Buffer.from(answer);
      vendor.behave({ kind: 'bytes', headers, body: encoding === undefined ? bytes : gzipSync(bytes) });
      const got = await send(textOf());
      expect(got.text).toBe(answer);
      expect(got.headers.get('content-encoding')).toBeNull();
    }
  });

  test('of a stream come back as they were sent, event by event, unknown ones and long ones too', async () => {
    const events = [
      'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}\n\n',
      ': alive\r\n\r\n',
      'event: news\ndata: {"a":1.10}\n\n',
      `event: content_block_delta\ndata: {"type":"content_block_delta","delta":{"text":"${'x'.repeat(100_000)}"}}\n\n`,
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ];
    vendor.behave({ kind: 'events', events });
    expect((await send(textOf('"stream":true'))).text).toBe(events.join(''));
  });
});

describe('what is judged cannot be said twice', () => {
  const judged: Record<string, [string, string]> = {
    model: ['"claude-m"', '"claude-other"'],
    stream: ['false', 'true'],
    max_tokens: ['1', '1000000'],
    messages: ['[{"role":"user","content":"x"}]', '[{"role":"user","content":[{"type":"made_up"}]}]'],
    system: ['"x"', '[{"type":"made_up"}]'],
    tools: ['[]', '[{"type":"web_search_20250305"}]'],
    container: ['null', '"c"'],
    mcp_servers: ['null', '[]'],
    metadata: ['null', '{}'],
    service_tier: ['"auto"', '"priority"'],
    speed: ['"standard"', '"fast"'],
    cache_control: ['null', '{"type":"ephemeral","ttl":"1h"}'],
    fallbacks: ['null', '"default"'],
  };
  const escaped = (name: string) => name.replace(/^./, (first) => `\\u00${first.charCodeAt(0).toString(16)}`);
  const rest = (name: string) =>
    ['"model":"claude-m"', '"max_tokens":5', '"messages":[{"role":"user","content":"x"}]'].filter(
      (member) => !member.startsWith(`"${name}"`),
    );

  test.each(Object.entries(judged))('%s: in either order, escaped, or in another case', async (name, values) => {
    for (const [first, second] of [values, [...values].reverse()]) {
      for (const other of [name, escaped(name), name.toUpperCase(), name.replace(/^./, (at) => at.toUpperCase())]) {
        for (const names of [
          [name, other],
          [other, name],
        ]) {
          const members = [`"${names[0]}":${first}`, ...rest(name), `"${names[1]}":${second}`];
          const { status, error } = await send(`{${members.join(',')}}`);
          expect(status, members.join()).toBe(400);
          expect(error.error.message.toLowerCase()).toContain(`${name}: `);
        }
      }
    }
    expect(vendor.requests).toEqual([]);
  });

  test.each([
    ['in a block', withBlock('{"type":"text","text":"a","t\\u0079pe":"image"}')],
    ['in a source', withBlock('{"type":"image","source":{"type":"base64","data":"","Data":"x"}}')],
    ['with a letter that folds', textOf('"s\u212aills":true')],
  ])('a member %s', async (_, text) => {
    expect((await send(text)).status).toBe(400);
    expect(vendor.requests).toEqual([]);
  });

  test('names inside the input of a tool are the client\u2019s', async () => {
    const input = '{"Type":"x","file_id":"f","container":{"URL":"http://a.b"}}';
    const text = withBlock(`{"type":"tool_use","id":"t","name":"n","input":${input}}`);
    expect((await send(text)).status).toBe(200);
    expect(sentText()).toBe(text);
  });

  test('a byte order mark, bytes that are no UTF-8 and half of a pair are 400', async () => {
    const text = textOf('"a":"\\ud83d\\ude00"');
    expect((await send(text)).status).toBe(200);
    vendor.requests.length = 0;
    for (const path of operations) {
      expect((await send(`\ufeff${text}`, { path })).status).toBe(400);
      const broken = Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0x20, 0xff, 0x7d])]);
      expect((await send(broken, { path })).status).toBe(400);
      expect((await send(textOf('"a":{"b":["\\ud83d"]}'), { path })).error.error.message).toContain('a.b.0');
    }
    expect(vendor.requests).toEqual([]);
  });
});

describe('members', () => {
  test('that Annals does not know pass, and are logged', async () => {
    expect((await send(textOf('"made_up":{"a":1.10}'))).status).toBe(200);
    expect(sentText()).toContain('"made_up":{"a":1.10}');
    expect(server.logLines.filter((line) => line.includes('made_up')).join()).toContain('cost is unknown');
  });

  test.each([
    ['mcp_servers', textOf('"mcp_servers":[]')],
    ['container', textOf('"container":"c"')],
    ['container', textOf('"container":{"skills":[]}')],
    ['thread', textOf('"thread":{"type":"create"}')],
    ['fallbacks', textOf('"fallbacks":"default"')],
    ['fallback_credit_token', textOf('"fallback_credit_token":"x"')],
    ['billing_policy', textOf('"billing_policy":{"type":"billing_policy"}')],
    ['betas', textOf('"betas":["files-api-2025-04-14"]')],
    ['anthropic_beta', textOf('"anthropic_beta":["files-api-2025-04-14"]')],
    ['diagnostics.previous_message_id', textOf('"diagnostics":{"previous_message_id":"msg_1"}')],
    ['tools.0.type', textOf('"tools":[{"type":"web_search_20250305","name":"web_search"}]')],
    ['tools.0.type', textOf('"tools":[{"type":"code_execution_20250825","name":"code_execution"}]')],
    ['tools.0.type', textOf('"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]')],
    ['tools.0.type', textOf('"tools":[{"type":"tool_search_tool_regex_20251119","name":"t"}]')],
    ['tools.0.type', textOf('"tools":[{"type":"advisor_20260301","name":"advisor","model":"m"}]')],
    ['tools.0.type', textOf('"tools":[{"type":"bash"}]')],
    ['tools.0.type', textOf('"tools":[{"type":7}]')],
    ['messages.0.content.0.source.type', withBlock('{"type":"image","source":{"type":"url","url":"https://a.b/c"}}')],
    ['messages.0.content.0.source.file_id', withBlock('{"type":"image","source":{"type":"file","file_id":"f"}}')],
    ['messages.0.content.0.source.url', withBlock('{"type":"image","source":{"type":"base64","data":"","url":"h"}}')],
    ['messages.0.content.0.source.data', withBlock('{"type":"image","source":{"type":"base64","data":"http://a"}}')],
    ['messages.0.content.0.source.type', withBlock('{"type":"document","source":{"type":"url","url":"https://a.b"}}')],
    ['messages.0.content.0.source.type', withBlock('{"type":"document","source":{"type":"made_up"}}')],
    ['messages.0.content.0.source', withBlock('{"type":"text","text":"x","source":{"type":"url","url":"https://a"}}')],
    [
      'messages.0.content.0.source.content.0.source.type',
      withBlock(
        '{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":"x"}}]}}',
      ),
    ],
    [
      'messages.0.content.0.content.0.source.type',
      withBlock(
        '{"type":"tool_result","tool_use_id":"t","content":[{"type":"image","source":{"type":"url","url":"x"}}]}',
      ),
    ],
    ['messages.0.content.0.type', withBlock('{"type":"server_tool_use","id":"s","name":"web_search","input":{}}')],
    ['messages.0.content.0.type', withBlock('{"type":"mcp_tool_use","id":"s","name":"x","input":{}}')],
    ['messages.0.content.0.type', withBlock('{"type":"container_upload"}')],
    ['messages.0.content.0.type', withBlock('{"type":"made_up"}')],
    [
      'messages.0.content.0.tool.definition.type',
      withBlock(
        '{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_fetch_20250910","name":"w"}}}',
      ),
    ],
    [
      'messages.0.content.0.tool.type',
      withBlock('{"type":"tool_addition","tool":{"type":"mcp_toolset_reference","server_name":"x"}}'),
    ],
    ['system.0.type', textOf('"system":[{"type":"made_up"}]')],
    ['max_tokens', '{"model":"claude-m","messages":[{"role":"user","content":"x"}]}'],
    ['max_tokens', '{"model":"claude-m","max_tokens":1000001,"messages":[{"role":"user","content":"x"}]}'],
    ['messages', '{"model":"claude-m","max_tokens":5}'],
    ['model', '{"max_tokens":5,"messages":[]}'],
  ])('400 names %s', async (param, text) => {
    const { status, error } = await send(text);
    expect({ status, type: error.type, message: error.error.message }, text).toEqual({
      status: 400,
      type: 'error',
      message: expect.stringContaining(` ${param}: `),
    });
    expect(error.error.type).toBe('invalid_request_error');
    expect(error.request_id).toMatch(/^[0-9a-f-]{36}$/);
    expect(vendor.requests).toEqual([]);
  });

  test.each([
    '"tools":[{"name":"f","input_schema":{"type":"object"},"eager_input_streaming":true,"defer_loading":true}]',
    '"tools":[{"type":"custom","name":"f","input_schema":{"type":"object"}}]',
    '"tools":[{"type":null,"name":"f","input_schema":{"type":"object"}}]',
    '"tools":[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"s"}]',
    '"tools":[{"type":"computer_20251124","name":"c"},{"type":"memory_20250818","name":"memory"}]',
    '"max_tokens_of_mine":0,"top_k":5,"tool_choice":{"type":"any"},"stop_sequences":["a"]',
    '"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"container":null',
    '"system":[{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}],"thinking":{"type":"adaptive"}',
    '"diagnostics":{"previous_message_id":null},"output_config":{"effort":"low"},"metadata":{"user_id":"u"}',
  ])('pass: %s', async (members) => {
    expect((await send(textOf(members))).status).toBe(200);
    expect(sentText()).toBe(textOf(members));
  });

  test.each([
    '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0="}}',
    '{"type":"document","source":{"type":"text","media_type":"text/plain","data":"https://a.b/c"}}',
    '{"type":"search_result","source":"https://a.b/c","title":"t","content":[{"type":"text","text":"x"}]}',
    '{"type":"redacted_thinking","data":"eA=="},{"type":"thinking","thinking":"","signature":"c2ln"}',
    '{"type":"tool_result","tool_use_id":"t","content":[{"type":"tool_reference","tool_name":"f"}]}',
    '{"type":"tool_use","id":"t","name":"f","input":{},"caller":{"type":"direct"}}',
    '{"type":"tool_removal","tool":{"type":"tool_reference","name":"f"}}',
  ])('blocks pass: %s', async (block) => {
    expect((await send(withBlock(block))).status).toBe(200);
    expect(sentText()).toBe(withBlock(block));
  });

  /** Of what the request itself has, and of what its client runs. */
  const allowedIds = ['id', 'tool_use_id', 'user_id', 'tab_id', 'download_id'];

  test('of the description that end in an id are 400, but for those of the request itself', async () => {
    const names = ['messages/messages', 'beta/messages/messages'].flatMap((name) => {
      const description = readFileSync(`node_modules/@anthropic-ai/sdk/resources/${name}.d.ts`, 'utf8');
      return [...description.matchAll(/^\s+(id|\w+_ids?)\??:/gm)].map(([, member = '']) => member);
    });
    const refused = [...new Set(names)].filter((name) => !allowedIds.includes(name));
    expect(refused).toEqual(expect.arrayContaining(['file_id', 'skill_id', 'previous_message_id', 'workspace_id']));
    for (const name of refused) {
      const { status, error } = await send(textOf(`"a":[{"${name}":"x"}]`));
      expect({ status, message: error.error.message }, name).toMatchObject({
        status: 400,
        message: expect.stringContaining(`a.0.${name}`),
      });
    }
    expect(vendor.requests).toEqual([]);
  });

  test('limits: messages, tools and the query', async () => {
    const { messages, tools, queryBytes } = anthropicLimits;
    const some = (count: number, value: string) => `[${Array.from({ length: count }, () => value).join()}]`;
    const ofMessages = (count: number) =>
      `{"model":"m","max_tokens":5,"messages":${some(count, '{"role":"user","content":"x"}')}}`;
    expect((await send(ofMessages(messages))).status).toBe(200);
    expect((await send(ofMessages(messages + 1))).status).toBe(400);
    const ofTools = (count: number) => textOf(`"tools":${some(count, '{"name":"f"}')}`);
    expect((await send(ofTools(tools))).status).toBe(200);
    expect((await send(ofTools(tools + 1))).status).toBe(400);
    const ofQuery = (bytes: number) => `messages?a=${'x'.repeat(bytes - 3)}`;
    expect((await send(textOf(), { path: ofQuery(queryBytes) })).status).toBe(200);
    expect((await send(textOf(), { path: ofQuery(queryBytes + 1) })).status).toBe(400);
  });
});

describe('headers', () => {
  test('of the client go out by a list, and of the vendor come back by a list', async () => {
    const back = {
      'request-id': 'req_1',
      'anthropic-ratelimit-tokens-remaining': '5',
      'anthropic-ratelimit-unified-5h-reset': '6',
      'retry-after': '1',
    };
    const others = { 'set-cookie': 'a=b', 'anthropic-organization-id': 'o', 'content-type': 'application/json' };
    const body = Buffer.from('{"type":"message","content":[]}');
    vendor.behave({ kind: 'bytes', headers: { ...back, ...others }, body });
    const own = await send(textOf(), {
      headers: { 'anthropic-beta': 'a-1', 'anthropic-version': '2023-06-01', cookie: 'a=b', 'x-made-up': '1' },
    });
    expect(Object.fromEntries(own.headers)).toMatchObject(back);
    for (const name of ['set-cookie', 'anthropic-organization-id']) expect(own.headers.get(name)).toBeNull();
    const sent = vendor.requests.at(-1)?.headers ?? {};
    expect(sent).toMatchObject({
      'anthropic-beta': 'a-1',
      'anthropic-version': '2023-06-01',
      'accept-encoding': 'identity',
      'x-api-key': 'sk-anthropic',
    });
    for (const name of ['cookie', 'x-made-up', 'authorization']) expect(sent[name]).toBeUndefined();
  });

  test('a credential as x-api-key is as good as a bearer, and two are 401', async () => {
    const url = `${server.baseUrl}/anthropic/acme/v1/messages`;
    const ask = async (headers: Record<string, string>) => {
      const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: textOf() };
      const response = await fetch(url, init);
      return { status: response.status, body: await response.json() };
    };
    const authorization = `Bearer ${token}`;
    expect((await ask({ 'x-api-key': token })).status).toBe(200);
    expect((await ask({ authorization })).status).toBe(200);
    const models = await fetch(`${server.baseUrl}/anthropic/acme/v1/models`, { headers: { 'x-api-key': token } });
    expect([models.status, models.headers.get('cache-control')]).toEqual([200, 'no-store']);
    vendor.requests.length = 0;
    const unauthorized = {
      status: 401,
      body: { type: 'error', error: { type: 'authentication_error' }, request_id: expect.any(String) },
    };
    expect(await ask({ 'x-api-key': token, authorization })).toMatchObject(unauthorized);
    expect(await ask({ 'api-key': token, authorization })).toMatchObject(unauthorized);
    for (const key of ['', 'wrong', `${token}, ${token}`]) {
      expect(await ask({ 'x-api-key': key })).toMatchObject(unauthorized);
    }
    expect(await ask({})).toMatchObject(unauthorized);
    expect(vendor.requests).toEqual([]);
    // Elsewhere the header is nothing.
    const elsewhere = await fetch(`${server.baseUrl}/openai/acme/v1/models`, { headers: { 'x-api-key': token } });
    expect(elsewhere.status).toBe(401);
  });

  test.each([
    ...['code-execution-2025-08-25', 'mcp-client-2025-11-20', 'files-api-2025-04-14', 'web-fetch-2025-09-10'],
    ...['skills-2025-10-02', 'managed-agents-2026-04-01', 'message-threads-2026-08-12', 'agent-memory-2026-07-22'],
    ...['server-side-fallback-2026-07-01', 'advisor-tool-2026-03-01', 'user-profiles-2026-09-04'],
    ...['a-1, web-search-2025-03-05', 'MCP-client-2025-11-20', 'x'.repeat(4_097)],
    ...['"files-api-2025-04-14"', 'a-1;files-api-2025-04-14', '[a-1]'],
  ])('a beta is 400: %s', async (beta) => {
    const { status, error } = await send(textOf(), { headers: { 'anthropic-beta': beta } });
    expect({ status, message: error.error.message }).toEqual({
      status: 400,
      message: expect.stringContaining('anthropic-beta'),
    });
  });

  test.each([
    ...['claude-code-20250219', 'interleaved-thinking-2025-05-14', 'context-management-2025-06-27'],
    ...['advanced-tool-use-2025-11-20', 'effort-2025-11-24', 'per-turn-control-2026-07-01', 'context-1m-2025-08-07'],
    ...['mid-conversation-tool-changes-2026-07-01', 'thinking-token-count-2026-05-13', 'x'.repeat(4_096)],
  ])('a beta passes: %s', async (beta) => {
    expect((await send(textOf(), { headers: { 'anthropic-beta': beta } })).status).toBe(200);
    expect(vendor.requests.at(-1)?.headers['anthropic-beta']).toBe(beta);
  });

  test('a version that is no date is 400', async () => {
    const { status, error } = await send(textOf(), { headers: { 'anthropic-version': 'x' } });
    expect({ status, message: error.error.message }).toMatchObject({ status: 400 });
    expect(error.error.message).toContain('anthropic-version');
  });
});

/** What is read of a stream before its connection is cut. */
async function readUntilCut(response: Response): Promise<string> {
  let text = '';
  const decoder = new TextDecoder();
  const drain = async () => {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
  };
  await expect(drain()).rejects.toThrow();
  return text;
}

describe('errors', () => {
  const error = { type: 'invalid_request_error', message: 'No such thing' };
  const ask = async (body: unknown, status = 400) => {
    vendor.behave({ kind: 'status', status, body });
    return await send(textOf());
  };

  test.each([401, 403])(
    'of the vendor with status %i never reach the client, which learns whose key it is',
    async (status) => {
      const answer = await ask({ type: 'error', error: { ...error, message: vendorSecret } }, status);
      expect(answer.text).not.toContain(vendorSecret);
      expect(answer).toMatchObject({
        status: 400,
        error: { error: { message: expect.stringContaining('anthropicApiToken') } },
      });
    },
  );

  test.each(['authentication_error', 'permission_error'])(
    'of the type %s never reach the client, whatever their status, nor do they in a stream without their event',
    async (type) => {
      const failure = { error: { type, message: vendorSecret } };
      expect((await ask({ type: 'error', ...failure }, 400)).text).not.toContain(vendorSecret);
      const start = 'data: {"type":"message_start","message":{"usage":{}}}\n\n';
      vendor.behave({ kind: 'events', events: [start, `data: ${JSON.stringify(failure)}\n\n`] });
      const json = JSON.parse(textOf('"stream":true'));
      const text = await readUntilCut(await server.call('/anthropic/acme/v1/messages', { token, json }));
      expect(text).not.toContain(vendorSecret);
      expect(text).toContain('anthropicApiToken');
    },
  );

  test('of the vendor reach no log', async () => {
    const answer = await ask({ type: 'error', error: { type: 'api_error', message: vendorSecret } }, 500);
    expect(answer).toMatchObject({ status: 502, error: { error: { type: 'api_error', message: vendorSecret } } });
    expect(server.logLines.join()).not.toContain(vendorSecret);
  });

  test('with the key in them, in base64 or URL-encoded, are replaced as a whole', async () => {
    const key = 'sk-ant-a+key/of=the-tenant';
    await server.createTenant('leaking');
    await setProviderToken(server, 'leaking', key, 'anthropicApiToken');
    const by = await server.token('leaking');
    const say = async (message: string) => {
      vendor.behave({ kind: 'status', status: 400, body: { type: 'error', error: { ...error, message } } });
      return await send(textOf(), { by, tenant: 'leaking' });
    };
    expect((await say('all is well')).text).toContain('all is well');
    const escaped = (write: (code: string) => string) =>
      key.replace(/\W|^./g, (at) => write(at.charCodeAt(0).toString(16)));
    const inUrl = (code: string) => `%${code}`;
    const hits = [
      key,
      encodeURIComponent(key),
      escaped(inUrl),
      Buffer.from(`ab${key}!`).toString('base64'),
      // In JSON, as it stands there.
      escaped((code) => `\\u00${code}`),
      key.replaceAll('/', '\\/'),
    ];
    const start = 'event: message_start\ndata: {"type":"message_start","message":{"usage":{}}}\n\n';
    for (const hit of hits) {
      if (!hit.includes('\\')) expect((await say(`you sent ${hit} and more`)).text).not.toContain('you sent');
      const saying = `"you sent ${hit} and more"`;
      const whole = `{"type":"message","content":[{"type":"text","text":${saying}}]}`;
      vendor.behave({ kind: 'bytes', headers: { 'content-type': 'application/json' }, body: Buffer.from(whole) });
      expect(await send(textOf(), { by, tenant: 'leaking' }), hit).toMatchObject({ status: 502 });
      const event = `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":${saying}}}\n\n`;
      const failure = `event: error\ndata: {"type":"error","error":{"type":"api_error","message":${saying}}}\n\n`;
      for (const last of [event, failure]) {
        vendor.behave({ kind: 'events', events: [start, last] });
        const json = JSON.parse(textOf('"stream":true'));
        const response = await server.call('/anthropic/leaking/v1/messages', { token: by, json });
        expect(await readUntilCut(response), hit).not.toContain('you sent');
      }
    }
  });

  test('of a stream are an event after a blank line, and cut the connection', async () => {
    const start = 'event: message_start\ndata: {"type":"message_start","message":{"usage":{}}}\n\n';
    const failure = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
    vendor.behave({ kind: 'events', events: [start, `event: error\ndata: ${JSON.stringify(failure)}\n\n`] });
    const response = await server.call('/anthropic/acme/v1/messages', {
      token,
      json: JSON.parse(textOf('"stream":true')),
    });
    const text = await readUntilCut(response);
    const [, event = ''] = text.split(start);
    expect(JSON.parse(event.replace('event: error\ndata: ', ''))).toMatchObject(failure);
  });

  test('404 names what is there, with a credential', async () => {
    for (const path of ['v1/complete', 'v1/messages/batches', 'v1/files', 'v1/skills', 'api/hello']) {
      const response = await server.call(`/anthropic/acme/${path}`, { token, json: {} });
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({
        type: 'error',
        error: { type: 'not_found_error', message: expect.stringContaining('v1/messages/count_tokens') },
      });
      expect((await server.call(`/anthropic/acme/${path}`)).status).toBe(401);
    }
  });

  test('HEAD answers at the base URL, with a credential', async () => {
    for (const path of ['/anthropic/acme', '/anthropic/acme/']) {
      expect((await server.call(path, { method: 'HEAD', token })).status).toBe(200);
      expect((await server.call(path, { method: 'HEAD' })).status).toBe(401);
    }
  });

  test.each(['gpt-5.4', 'openai/gpt-5.4', 'anthropic/', 'self_hosted/a'])('404 for the model %s', async (model) => {
    expect(await send(textOf('', model))).toMatchObject({ status: 404, error: { error: { type: 'not_found_error' } } });
    expect(vendor.requests).toEqual([]);
  });
});

describe('budgets', () => {
  const limited = async (tenant: string, budget: object) => {
    await tenantWithKeys(tenant);
    const by = await server.token(tenant);
    const made = await server.call(`/usage/${tenant}/budgets`, {
      token: by,
      json: { id: 'b', period: 'day', ...budget },
    });
    expect(made.status).toBe(201);
    return { by, tenant };
  };

  test('a file, a typed tool and a compaction have no bound, and an image in a result of a tool has that of the prices', async () => {
    const of = await limited('bounded', { limitTokens: 1_000_000_000 });
    const image = '{"type":"image","source":{"type":"base64","media_type":"image/png","data":"eA=="}}';
    const inResult = `{"type":"tool_result","tool_use_id":"t","content":[${image}]}`;
    const pdf = '{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"eA=="}}';
    const unbounded = [
      withBlock(pdf),
      textOf('"tools":[{"type":"bash_20250124","name":"bash"}]'),
      textOf('"context_management":{"edits":[{"type":"compact_20260112"}]}'),
      textOf('"compaction":{"type":"summarize"}'),
      // A model without a price has no bound of an image.
      withBlock(inResult),
    ];
    for (const text of unbounded) expect(await send(text, of), text).toMatchObject({ status: 400 });
    expect(vendor.requests).toEqual([]);
    expect((await send(withBlock(inResult).replace('claude-m', 'claude-sonnet-4-5'), of)).status).toBe(200);
    expect((await send(textOf(), of)).status).toBe(200);
  });

  test('each reference to a tool reserves the largest tool once more, also one that joins later', async () => {
    const of = await limited('referring', { limitTokens: 1_000_000 });
    const definition = `{"name":"f","description":"${'x'.repeat(1_000)}","input_schema":{}}`;
    const added = `{"type":"tool_addition","tool":{"type":"tool_definition","definition":${definition}}}`;
    const reference = '{"type":"tool_reference","tool_name":"f"}';
    const text = withBlock(`${added},${reference},${reference}`);
    vendor.behave({ kind: 'cut' });
    expect((await send(text, of)).status).toBe(502);
    const response = await server.call('/usage/referring/budgets/b', { token: of.by });
    const reserved = text.length + 2 * definition.length + perCall + perCallOfOthers + 50;
    expect(await response.json()).toMatchObject({ use: { spentTokens: reserved } });
  });

  test('what changes the price of tokens is 400 under a limit in dollars, and its cost is unknown without', async () => {
    const of = await limited('priced', { limitUsd: '100' });
    const members = [
      ...['"speed":"fast"', '"service_tier":"priority"', '"inference_geo":"us"'],
      '"cache_control":{"type":"ephemeral","ttl":"2h"}',
    ];
    for (const member of members) {
      const text = textOf(member, 'claude-sonnet-4-5');
      expect(await send(text, of), text).toMatchObject({
        status: 400,
        error: { error: { message: expect.stringContaining('has no price') } },
      });
    }
    const usual = ['"speed":"standard"', '"service_tier":"auto"', '"cache_control":{"type":"ephemeral","ttl":"1h"}'];
    for (const member of usual) expect((await send(textOf(member, 'claude-sonnet-4-5'), of)).status).toBe(200);
  });

  test('a call that may write to a cache for an hour reserves that price, and is charged by what it wrote', async () => {
    const cache = (ttl: string) => textOf(`"cache_control":{"type":"ephemeral","ttl":"${ttl}"}`, 'claude-sonnet-4-5');
    const input = cache('5m').length + perCall + perCallOfOthers;
    // In dollars a million: 3.75 for five minutes, 6 for an hour, 15 for output.
    const limitUsd = ((input * 4.875 + 50 * 15) / 1_000_000).toFixed(12);
    const of = await limited('hourly', { limitUsd });
    expect((await send(cache('1h'), of)).status).toBe(429);
    const writes = { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 };
    const usage = { input_tokens: 1, cache_creation_input_tokens: 30, cache_creation: writes, output_tokens: 2 };
    const body = { type: 'message', content: [], stop_reason: 'end_turn', usage };
    const headers = { 'content-type': 'application/json' };
    vendor.behave({ kind: 'bytes', headers, body: Buffer.from(JSON.stringify(body)) });
    expect((await send(cache('5m'), of)).status).toBe(200);
    const calls = await server.call('/usage/hourly/calls', { token: of.by });
    expect(await calls.json()).toMatchObject([
      { inputTokens: 31, cacheWriteTokens: 30, hourCacheWriteTokens: 20, costUsd: '0.0001905' },
    ]);
  });

  test('figures: all iterations count, and what is not told charges what was reserved', async () => {
    const of = await limited('counted', { limitTokens: 1_000_000 });
    const spent = async () => {
      const response = await server.call('/usage/counted/budgets/b', { token: of.by });
      const { use } = (await response.json()) as { use: { spentTokens: number; reservedTokens: number } };
      expect(use.reservedTokens).toBe(0);
      return use.spentTokens;
    };
    const answer = (usage: object) => {
      const body = { type: 'message', content: [], stop_reason: 'end_turn', usage };
      const headers = { 'content-type': 'application/json' };
      vendor.behave({ kind: 'bytes', headers, body: Buffer.from(JSON.stringify(body)) });
    };
    const one = { input_tokens: 3, cache_read_input_tokens: 20, cache_creation_input_tokens: 100, output_tokens: 5 };
    answer(one);
    await send(textOf(), of);
    expect(await spent()).toBe(128);
    const iterations = [
      { ...one, type: 'compaction' },
      { input_tokens: 1, output_tokens: 1, type: 'message' },
    ];
    answer({ input_tokens: 1, output_tokens: 1, iterations });
    await send(textOf(), of);
    expect(await spent()).toBe(128 + 130);
    // What no answer can have is no figure, and less than the figures at the top is not believed.
    answer({ input_tokens: 1, output_tokens: 2, iterations: [{ input_tokens: 0, output_tokens: 0 }] });
    await send(textOf(), of);
    expect(await spent()).toBe(258 + 3);
    const most = { input_tokens: 1, output_tokens: 1_000_000_000_000 };
    answer({ input_tokens: 1, output_tokens: 1, iterations: [most, most] });
    await send(textOf(), of);
    expect(await spent()).toBe(258 + 3 + 2 + 50);
    // The output at the start of a stream is none.
    const start = { type: 'message_start', message: { usage: { input_tokens: 2, output_tokens: 1 } } };
    const stop = { type: 'message_stop' };
    vendor.behave({ kind: 'events', events: [start, stop].map((data) => `data: ${JSON.stringify(data)}\n\n`) });
    const text = textOf('"stream":true');
    expect((await send(text, of)).status).toBe(200);
    expect(await spent()).toBe(313 + 2 + 50);
    // Null stands for no figure.
    const last = { input_tokens: null, cache_read_input_tokens: null, output_tokens: 4 };
    const delta = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: last };
    vendor.behave({ kind: 'events', events: [start, delta, stop].map((data) => `data: ${JSON.stringify(data)}\n\n`) });
    expect((await send(text, of)).status).toBe(200);
    expect(await spent()).toBe(365 + 2 + 4);
    // Only the events that have figures are read for them, and none after the end.
    const none = { input_tokens: 0, output_tokens: 0 };
    const later = [{ type: 'ping', usage: none }, stop, { type: 'message_start', message: { usage: none } }];
    const again = [start, delta, ...later, { ...delta, usage: none }];
    vendor.behave({ kind: 'events', events: again.map((data) => `data: ${JSON.stringify(data)}\n\n`) });
    expect((await send(text, of)).status).toBe(200);
    expect(await spent()).toBe(371 + 2 + 4);
    vendor.behave({ kind: 'cut' });
    expect((await send(textOf(), of)).status).toBe(502);
    expect(await spent()).toBe(377 + textOf().length + perCall + perCallOfOthers + 50);
  });
});
