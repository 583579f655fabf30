import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, test } from 'vitest';
import { closeAfterAll } from '../../support/close-after-all.ts';
import { Random } from '../../support/oracle/random.ts';
import { randomJson } from '../../support/oracle/random-json.ts';
import { trials } from '../../support/oracle/trials.ts';
import { vendorSecret } from '../../support/vendor/vendor-server.ts';
import { startOpenai } from './openai-server.ts';

const openai = closeAfterAll(await startOpenai());
const { vendor, server } = openai;
await openai.tenantWithKeys('acme');
await server.createTenant('sharing');
const token = await server.token('acme');
const sharing = await server.token('sharing');

const random = new Random();
const passed = ['openai', 'self_hosted'] as const;
const keys = { openai: 'sk-openai', self_hosted: 'sk-server' };
const operations = ['chat/completions', 'responses'] as const;
type Operation = (typeof operations)[number];
/** What each operation needs beside a model, as text. */
const needed: Record<Operation, string> = {
  'chat/completions': '"messages":[{"role":"user","content":"Hello"}]',
  responses: '"input":"Hello"',
};
const pathOf: Record<Operation, string> = { 'chat/completions': 'messages', responses: 'input' };

beforeEach(() => {
  vendor.behave({ kind: 'answer', text: 'one two three', usage: { input: 7, output: 3 } });
  vendor.requests.length = 0;
});

interface Sent {
  operation?: Operation;
  by?: 'acme' | 'sharing';
  headers?: Record<string, string>;
}

async function send(
  body: string | Uint8Array<ArrayBuffer>,
  { operation = 'chat/completions', by = 'acme', headers }: Sent = {},
) {
  const response = await server.call(`/openai/${by}/v1/${operation}`, {
    method: 'POST',
    token: by === 'acme' ? token : sharing,
    headers: { 'content-type': 'application/json', ...headers },
    body,
  });
  const text = await response.text();
  const error = response.ok ? undefined : JSON.parse(text).error;
  return { status: response.status, headers: response.headers, text, error };
}

function textOf(operation: Operation, members: string, model = 'openai/m'): string {
  return `{"model":"${model}",${needed[operation]}${members === '' ? '' : `,${members}`}}`;
}

function sentText(): string {
  return vendor.requests.at(-1)?.bodyText ?? '';
}

describe('bytes', () => {
  test.each(operations.flatMap((operation) => passed.map((provider) => [operation, provider] as const)))(
    'of a request of %s go out to %s as they came, but for what Annals sets',
    async (operation, provider) => {
      for (let trial = 0; trial < trials(10); trial += 1) {
        const before = `"first" : ${randomJson(random)} , `;
        const after = `\n"last":${randomJson(random)},"temperature" : 1.0e0 `;
        const isStream = random.below(2) === 1;
        const stream = isStream ? '"stream":true,' : '';
        const text = `\n{ ${before}${stream}"mod\\u0065l" : "${provider}/m" , ${needed[operation]},"store": null ,${after}}\n`;
        const { status } = await send(text, { operation });
        expect(status, text).toBe(200);
        const usage = isStream && operation === 'chat/completions' ? '"stream_options":{"include_usage":true},' : '';
        const expected = text.replace(`"${provider}/m"`, '"m"').replace('"store": null', '"store": false');
        expect(sentText()).toBe(expected.replace('{', `{${usage}`));
        expect(vendor.requests.at(-1)?.headers).toMatchObject({ authorization: `Bearer ${keys[provider]}` });
      }
    },
  );

  test('of options of a stream stay, and only include_usage is set', async () => {
    for (const [options, expected] of [
      ['{}', '{"include_usage":true}'],
      [
        '{ "include_usage" : false, "include_obfuscation":false }',
        '{ "include_usage" : true, "include_obfuscation":false }',
      ],
      ['null', '{"include_usage":true}'],
      ['{"x":1}', '{"include_usage":true,"x":1}'],
    ]) {
      const { text } = await send(textOf('chat/completions', `"stream":true,"stream_options":${options}`));
      expect(sentText()).toContain(`"stream_options":${expected}`);
      expect(text).not.toContain('"usage":{');
      expect(text).toMatch(/data: \[DONE\]\n\n$/);
    }
    const { text } = await send(textOf('chat/completions', '"stream":true,"stream_options":{"include_usage":true}'));
    expect(text).toContain('"usage":{');
  });

  test.each(operations.flatMap((operation) => passed.map((provider) => [operation, provider] as const)))(
    'of an answer of %s come back from %s as they were sent, plain and compressed',
    async (operation, provider) => {
      for (let trial = 0; trial < trials(5); trial += 1) {
        const list = operation === 'responses' ? 'output' : 'choices';
        const answer = ` { "made_up" : ${randomJson(random)}, "${list}":[ ${randomJson(random)} ], "usage":{"prompt_tokens":1.0}}\n`;
        for (const encoding of [undefined, 'gzip']) {
          const headers = { 'content-type': 'application/json', ...(encoding && { 'content-encoding': encoding }) };
          const bytes = Buffer.from(answer);
          vendor.behave({ kind: 'bytes', headers, body: encoding === undefined ? bytes : gzipSync(bytes) });
          const got = await send(textOf(operation, '', `${provider}/m`), { operation });
          expect(got.text).toBe(answer);
          expect(got.headers.get('content-encoding')).toBeNull();
        }
      }
    },
  );

  test('of a stream come back as they were sent, unknown events of openai too, and not those of a server', async () => {
    const event = (data: string) => `data: ${data}\n\n`;
    const chunk = '{"choices":[{"index":0,"delta":{"content":"a","annotations":[1.10]},"finish_reason":"stop"}]}';
    const events = [event(chunk), ': alive\r\n\r\n', 'event: news\ndata: {"secret":1}\n\n', event('[DONE]')];
    vendor.behave({ kind: 'events', events });
    const ask = async (provider: string) => await send(textOf('chat/completions', '"stream":true', `${provider}/m`));
    expect((await ask('openai')).text).toBe(events.join(''));
    expect((await ask('self_hosted')).text).toBe(event(chunk) + event('[DONE]'));
  });
});

describe('what is judged cannot be said twice', () => {
  const judged: Record<string, [string, string]> = {
    model: ['"openai/m"', '"anthropic/other"'],
    store: ['false', 'true'],
    stream: ['false', 'true'],
    n: ['1', '100'],
    max_tokens: ['1', '1000000'],
    max_completion_tokens: ['1', '1000000'],
    tools: ['[]', '[{"type":"web_search"}]'],
    tool_choice: ['"auto"', '"required"'],
    messages: ['[{"role":"user","content":"x"}]', '[{"role":"user","content":[{"type":"made_up"}]}]'],
    prediction: ['null', '{"type":"content","content":"x"}'],
    service_tier: ['"default"', '"priority"'],
    stream_options: ['null', '{}'],
    modalities: ['["text"]', '["audio"]'],
    user: ['"a"', '"b"'],
  };
  const escaped = (name: string) => name.replace(/^./, (first) => `\\u00${first.charCodeAt(0).toString(16)}`);
  const rest = (name: string) =>
    ['"model":"openai/m"', needed['chat/completions']].filter((member) => !member.startsWith(`"${name}"`));

  test.each(Object.entries(judged))('%s: in either order, escaped, or in another case', async (name, values) => {
    for (const [first, second] of [values, [...values].reverse()]) {
      for (const other of [
        name,
        escaped(name),
        name.toUpperCase(),
        name.replace(/^./, (letter) => letter.toUpperCase()),
      ]) {
        for (const names of [
          [name, other],
          [other, name],
        ]) {
          const members = [`"${names[0]}":${first}`, ...rest(name), `"${names[1]}":${second}`];
          const { status, error } = await send(`{${members.join(',')}}`);
          expect(status, members.join()).toBe(400);
          expect(String(error.param).toLowerCase()).toBe(name);
        }
      }
    }
    expect(vendor.requests).toEqual([]);
  });

  test.each([
    ['in a part', '"messages":[{"role":"user","content":[{"type":"text","text":"a","t\\u0079pe":"file"}]}]'],
    [
      'in the options of a stream',
      `${needed['chat/completions']},"stream":true,"stream_options":{"include_usage":true,"Include_Usage":false}`,
    ],
    ['in a schema', `${needed['chat/completions']},"response_format":{"type":"json_object","a":{"b":1,"b":2}}`],
    ['with a letter that folds', `${needed['chat/completions']},"bac\u212aground":true`],
    ['with another letter that folds', `${needed['chat/completions']},"\u017ftore":true`],
  ])('a member %s', async (_, members) => {
    expect((await send(`{"model":"openai/m",${members}}`)).status).toBe(400);
    expect(vendor.requests).toEqual([]);
  });

  test('a byte order mark, bytes that are no UTF-8 and half of a pair are 400', async () => {
    const text = textOf('chat/completions', '"a":"\\ud83d\\ude00"');
    expect((await send(text)).status).toBe(200);
    vendor.requests.length = 0;
    expect((await send(`\ufeff${text}`)).status).toBe(400);
    expect((await send(Buffer.concat([Buffer.from(text.slice(0, -1)), Buffer.from([0x20, 0xff, 0x7d])]))).status).toBe(
      400,
    );
    for (const half of ['\\ud83d', '\\ude00', '\\uD83D x']) {
      expect((await send(textOf('chat/completions', `"a":{"b":["${half}"]}`))).error.param).toBe('a.b.0');
      expect((await send(textOf('chat/completions', `"a${half}":1`))).status).toBe(400);
    }
    expect(vendor.requests).toEqual([]);
  });
});

describe('members', () => {
  test('that Annals does not know pass on an own key, are logged, and are 400 on the shared token', async () => {
    for (const operation of operations) {
      const text = textOf(operation, '"made_up":{"a":1.10}');
      expect((await send(text, { operation })).status).toBe(200);
      expect(sentText()).toContain('"made_up":{"a":1.10}');
      expect(server.logLines.filter((line) => line.includes('made_up')).join()).toContain('cost is unknown');
      vendor.requests.length = 0;
      const shared = textOf(operation, '"made_up":1', 'gpt-4.1-mini');
      expect(await send(shared, { operation, by: 'sharing' })).toMatchObject({
        status: 400,
        error: { param: 'made_up' },
      });
      expect(vendor.requests).toEqual([]);
    }
  });

  test('of messages, parts and tools that it does not know are 400 on the shared token alone', async () => {
    for (const [param, members] of [
      ['messages.0.made_up', '"messages":[{"role":"user","content":"x","made_up":1}]'],
      [
        'messages.0.content.0.made_up',
        '"messages":[{"role":"user","content":[{"type":"text","text":"x","made_up":1}]}]',
      ],
      [
        'tools.0.made_up',
        `${needed['chat/completions']},"tools":[{"type":"function","function":{"name":"f"},"made_up":1}]`,
      ],
      ['n', `${needed['chat/completions']},"n":2`],
      ['logprobs', `${needed['chat/completions']},"logprobs":true`],
    ]) {
      expect((await send(`{"model":"openai/m",${members}}`)).status).toBe(200);
      const shared = await send(`{"model":"gpt-4.1-mini",${members}}`, { by: 'sharing' });
      expect(shared).toMatchObject({ status: 400, error: { param } });
    }
  });

  test('that name who asks go out on the shared token as a hash with the tenant, and hints do not', async () => {
    const members =
      '"user":"jane","safety_identifier":"jane","prompt_cache_key":"k","seed":1,"service_tier":"priority","n":1';
    await send(textOf('chat/completions', members, 'gpt-4.1-mini'), { by: 'sharing' });
    const sent = vendor.requests.at(-1)?.body as Record<string, unknown>;
    expect(sent).toMatchObject({ user: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(sent.safety_identifier).toBe(sent.user);
    expect(sent.prompt_cache_key).not.toBe(sent.user);
    expect(Object.keys(sent).sort()).toEqual(
      ['max_completion_tokens', 'messages', 'model', 'prompt_cache_key', 'safety_identifier', 'store', 'user'].sort(),
    );
    await send(textOf('chat/completions', members));
    expect(sentText()).toContain(members);
  });

  const file = (part: string) => `"messages":[{"role":"user","content":[${part}]}]`;
  test.each([
    ['store', 'x', '"store":true'],
    ['prediction', 'x', '"prediction":{"type":"content","content":"x"}'],
    ['previous_response_id', 'x', '"previous_response_id":"r"'],
    ['conversation', 'x', '"conversation":"c"'],
    ['prompt', 'x', '"prompt":{"id":"p"}'],
    ['background', 'x', '"background":true'],
    ['container', 'x', '"container":"c"'],
    ['a.0.vector_store_ids', 'x', '"a":[{"vector_store_ids":["v"]}]'],
    ['audio.voice', 'x', '"audio":{"voice":{"id":"v"},"format":"wav"}'],
    ['messages.0.content.0.file.file_id', file('{"type":"file","file":{"file_id":"f"}}'), ''],
    ['messages.0.content.0.file.file_data', file('{"type":"file","file":{"file_data":"https://a.b/c"}}'), ''],
    ['messages.0.content.0.input_audio.data', file('{"type":"input_audio","input_audio":{"data":"http://a.b/c"}}'), ''],
    ['messages.0.content.0.image_url.url', file('{"type":"image_url","image_url":{"url":"https://a.b/c"}}'), ''],
    ['messages.0.content.0.image_url', file('{"type":"image_url","image_url":"https://a.b/c"}'), ''],
    ['messages.0.content.0.type', file('{"type":"made_up"}'), ''],
    ['messages.0.content.0.image_url', file('{"type":"text","text":"x","image_url":{"url":"https://a.b/c"}}'), ''],
    ['messages.0.audio.id', '"messages":[{"role":"assistant","audio":{"id":"a"}}]', ''],
    ['messages.0.tool_calls.0.type', '"messages":[{"role":"assistant","tool_calls":[{"type":"web"}]}]', ''],
    ['tools.0.type', 'x', '"tools":[{"type":"made_up"}]'],
    ['tool_choice', 'x', '"tools":[{"type":"web_search"}],"tool_choice":"required"'],
    ['tool_choice.type', 'x', '"tool_choice":{"type":"web_search"}'],
    ['n', 'x', '"n":9'],
    ['max_tokens', 'x', '"max_tokens":5,"max_completion_tokens":5'],
  ])('400 names %s with the key of either', async (param, first, members) => {
    for (const provider of passed) {
      const messages = first === 'x' ? needed['chat/completions'] : first;
      const text = `{"model":"${provider}/m",${messages}${members === '' ? '' : `,${members}`}}`;
      expect(await send(text), text).toMatchObject({ status: 400, error: { param } });
    }
    expect(vendor.requests).toEqual([]);
  });

  /** Of what the request itself has, and of events. */
  const allowedIds = ['id', 'tool_call_id', 'call_id', 'caller_id', 'item_id', 'stream_id'];

  test('of the description that end in an id are 400, but for those of the request itself', async () => {
    const names = ['chat/completions/completions', 'responses/responses'].flatMap((name) => {
      const description = readFileSync(`node_modules/openai/resources/${name}.d.ts`, 'utf8');
      return [...description.matchAll(/^\s+(id|\w+_ids?)\??:/gm)].map(([, member = '']) => member);
    });
    const refused = [...new Set(names)].filter((name) => !allowedIds.includes(name));
    expect(refused).toEqual(
      expect.arrayContaining(['file_id', 'vector_store_ids', 'previous_response_id', 'skill_id']),
    );
    for (const name of refused) {
      for (const operation of operations) {
        const answer = await send(textOf(operation, `"a":[{"${name}":"x"}]`), { operation });
        expect(answer, name).toMatchObject({ status: 400, error: { param: `a.0.${name}` } });
      }
    }
    expect(vendor.requests).toEqual([]);
  });

  test.each(['kv_transfer_params', 'bootstrap_host', 'chat_template', 'mm_processor_kwargs', 'lora_path', 'LoRA_path'])(
    '%s is 400 for a server, which would reach or run something',
    async (name) => {
      const { status, error } = await send(textOf('chat/completions', `"${name}":"x"`, 'self_hosted/m'));
      expect({ status, param: error.param }).toEqual({ status: 400, param: name });
      expect((await send(textOf('chat/completions', `"${name}":"x"`))).status).toBe(200);
    },
  );

  test('of the cap: the shared token has its newer name, and an own key the one that came', async () => {
    await send(textOf('chat/completions', '"max_tokens":50'));
    expect(sentText()).toMatch(/,"max_tokens":50\}$/);
    const { status } = await send(textOf('chat/completions', '"max_tokens":50', 'gpt-4.1-mini'), { by: 'sharing' });
    expect(status).toBe(200);
    expect(sentText()).toContain('"max_completion_tokens":50');
    expect(sentText()).not.toContain('max_tokens');
  });

  test('n of 8 passes, and hosted tools are left out of chat completions as well', async () => {
    expect((await send(textOf('chat/completions', '"n":8'))).status).toBe(200);
    const custom = '{"type":"custom","custom":{"name":"x"}}';
    const tools = `"tools":[{"type":"web_search"}, ${custom} ,{"type":"file_search"}],"web_search_options":{}`;
    const answer = await send(textOf('chat/completions', tools));
    expect(answer.headers.get('annals-left-out')).toBe('web_search, file_search');
    expect(sentText()).toMatch(/"tools":\[\{"type":"custom","custom":\{"name":"x"\}\}\]\}$/);
    await send(textOf('chat/completions', '"tools":[{"type":"web_search"}],"tool_choice":"auto"'));
    expect(sentText()).not.toContain('tool');
  });
});

describe('headers', () => {
  test('of the client go out by a list, and of the vendor come back by a list', async () => {
    const back = { 'x-request-id': 'req_1', 'openai-processing-ms': '9', 'x-ratelimit-remaining-tokens': '5' };
    const body = Buffer.from('{"choices":[]}');
    const others = { 'set-cookie': 'a=b', server: 'x', 'openai-organization': 'o', 'content-type': 'application/json' };
    vendor.behave({ kind: 'bytes', headers: { ...back, ...others }, body });
    const headers = { 'openai-beta': 'responses=v1', 'openai-organization': 'o', cookie: 'a=b', 'x-made-up': '1' };
    const own = await send(textOf('chat/completions', ''), { headers });
    expect(Object.fromEntries(own.headers)).toMatchObject(back);
    for (const name of ['set-cookie', 'openai-organization', 'server']) expect(own.headers.get(name)).toBeNull();
    const sent = vendor.requests.at(-1)?.headers ?? {};
    expect(sent).toMatchObject({ 'openai-beta': 'responses=v1', 'accept-encoding': 'identity' });
    for (const name of ['openai-organization', 'cookie', 'x-made-up']) expect(sent[name]).toBeUndefined();
    const shared = await send(textOf('chat/completions', '', 'gpt-4.1-mini'), { headers, by: 'sharing' });
    expect(shared.headers.get('x-request-id')).toBe('req_1');
    expect(shared.headers.get('x-ratelimit-remaining-tokens')).toBeNull();
    expect(vendor.requests.at(-1)?.headers['openai-beta']).toBeUndefined();
  });

  test.each(['assistants=v2', 'a=1, assistants=v2', 'x'.repeat(4_097)])('a beta is 400: %s', async (beta) => {
    const answer = await send(textOf('chat/completions', ''), { headers: { 'openai-beta': beta } });
    expect(answer).toMatchObject({ status: 400, error: { param: 'openai-beta' } });
  });

  test('two credentials are 401', async () => {
    for (const name of ['x-api-key', 'api-key']) {
      expect((await send(textOf('chat/completions', ''), { headers: { [name]: token } })).status).toBe(401);
    }
    expect(vendor.requests).toEqual([]);
  });
});

describe('errors', () => {
  const error = { message: 'No such thing', type: 'invalid_request_error', param: 'messages', code: 'no_such_thing' };
  const ask = async (provider: string, body: unknown, status = 400) => {
    vendor.behave({ kind: 'status', status, body });
    return await send(textOf('chat/completions', '', `${provider}/m`));
  };

  test('of the vendor reach the client on an own key, and never on the shared token', async () => {
    for (const provider of passed) expect(await ask(provider, { error })).toMatchObject({ status: 400, error });
    const shared = await send(textOf('chat/completions', '', 'gpt-4.1-mini'), { by: 'sharing' });
    expect(shared).toMatchObject({ status: 400, error: { message: 'The provider refuses the request.' } });
  });

  test('reach no log', async () => {
    for (const provider of passed) {
      const answer = await ask(provider, { error: { ...error, message: vendorSecret } }, 500);
      expect(answer).toMatchObject({ status: 502, error: { message: vendorSecret } });
    }
    expect(server.logLines.join()).toContain('provider call failed: unavailable');
    expect(server.logLines.join()).not.toContain(vendorSecret);
  });

  test('of a stream reach the client as well, and cut its connection', async () => {
    const chunk = 'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n';
    vendor.behave({ kind: 'events', events: [chunk, `data: ${JSON.stringify({ error })}\n\n`] });
    const response = await server.call('/openai/acme/v1/chat/completions', {
      token,
      json: JSON.parse(textOf('chat/completions', '"stream":true')),
    });
    let text = '';
    const decoder = new TextDecoder();
    const drain = async () => {
      for await (const bytes of response.body ?? []) text += decoder.decode(bytes, { stream: true });
    };
    await expect(drain()).rejects.toThrow();
    expect(text).toBe(`${chunk}data: ${JSON.stringify({ error })}\n\n`);
  });

  test.each([401, 403])('of status %i never do', async (status) => {
    for (const provider of passed) {
      const { text } = await ask(provider, { error: { ...error, message: vendorSecret } }, status);
      expect(text).not.toContain(vendorSecret);
    }
  });

  test('with the key in them, in base64 or URL-encoded, are replaced as a whole', async () => {
    const key = 'sk-a+key/of=the-tenant';
    const items = { key: 'selfHostedProvider', value: { url: vendor.baseUrl, apiKey: key } };
    const by = await server.token('leaking');
    const made = await server.call('/configuration/leaking/configurations', { token: by, json: [items] });
    expect(made.status).toBe(201);
    const say = async (message: string) => {
      vendor.behave({ kind: 'status', status: 400, body: { error: { ...error, message } } });
      const json = JSON.parse(textOf('chat/completions', '', 'self_hosted/m'));
      return await (await server.call('/openai/leaking/v1/chat/completions', { token: by, json })).json();
    };
    expect(await say('all is well')).toMatchObject({ error: { message: 'all is well' } });
    const basic = ['', 'a', 'ab', 'Bearer '].map((before) => Buffer.from(`${before}${key}!`).toString('base64'));
    for (const hit of [key, encodeURIComponent(key), ...basic]) {
      const answer = JSON.stringify(await say(`you sent ${hit} and more`));
      expect(answer).not.toContain('you sent');
    }
  });

  test('of a server pass as four texts of at most 500 characters, and no other text of it', async () => {
    const message = (length: number) => ({ error: { ...error, message: 'x'.repeat(length) } });
    expect((await ask('self_hosted', message(500))).error.message).toHaveLength(500);
    expect((await ask('openai', message(501))).error.message).toHaveLength(501);
    const ours = 'The provider refuses the request.';
    for (const body of [message(501), { error: { ...error, code: {} } }, { message: 7 }, { secret: 1 }, [], 'x']) {
      expect((await ask('self_hosted', body)).error.message).toBe(ours);
    }
    for (const text of ['{"secret":1}', '[]', '{"choices":{}}', '<html>', '{"output":[]}']) {
      vendor.behave({ kind: 'bytes', headers: { 'content-type': 'application/json' }, body: Buffer.from(text) });
      const { status, error: shown } = await send(textOf('chat/completions', '', 'self_hosted/m'));
      expect({ status, message: shown.message }).toEqual({
        status: 502,
        message: 'The provider gave no usable answer.',
      });
      const streamed = await send(textOf('chat/completions', '"stream":true', 'self_hosted/m'));
      expect(streamed.status).toBe(502);
    }
  });
});

test('a request of /responses goes to a server of the tenant too', async () => {
  const text = textOf('responses', '', 'self_hosted/m');
  expect(await send(text, { operation: 'responses' })).toMatchObject({ status: 200 });
  expect(vendor.requests.at(-1)).toMatchObject({ model: 'm', headers: { authorization: 'Bearer sk-server' } });
  const refusedModel = await send(textOf('responses', '', 'google/m'), { operation: 'responses' });
  expect(refusedModel).toMatchObject({ status: 400, error: { param: 'model' } });
});

test('400 names what a request lacks', async () => {
  for (const operation of operations) {
    const { error } = await send('{"model":"openai/m"}', { operation });
    expect(error.param).toBe(pathOf[operation]);
  }
});
