// Puts the prompt on a line of its own after a JSON answer.
const newline = String.raw`-w '\n'`;

/** The parameters of the demo's calls. */
interface SampleCallOptions {
  baseUrl: string;
  recorderUrl: string;
  /** The time of the sample's change, in milliseconds since 1970. */
  now: number;
  tenant: string;
  clientId: string;
  clientSecret: string;
  /** The settings of the database before a command, with a trailing blank; empty if they have secrets. */
  tailSettings: string;
  /** The number of an order with a history. */
  order: string;
  /** The middle of the time range of a call, in milliseconds since 1970. */
  around: number;
  /** A key for clients of language models; undefined without them. */
  openaiKey: string | undefined;
}

/**
 * Calls to paste into a shell, with only curl and sed: one for a token, one that records a change, the others for the
 * history. The variables are those of the scripts under examples/.
 */
export function sampleCalls(options: SampleCallOptions): string {
  const { baseUrl, recorderUrl, tenant, clientId, clientSecret, tailSettings, now } = options;
  const calls = questions(options).map(
    ({ what, parameters }) =>
      `# ${what}\ncurl -sG $ANNALS_URL/changelog/${tenant}/changelogs -H "Authorization: Bearer $TOKEN" ${newline} ${parameters}\n`,
  );
  return `
export ANNALS_URL=${baseUrl}
export ANNALS_RECORDER_URL=${recorderUrl}
export ANNALS_CLIENT_ID=${clientId}
export ANNALS_CLIENT_SECRET=${clientSecret}

# First a token; it is good for four hours.
TOKEN=$(curl -s -u "$ANNALS_CLIENT_ID:$ANNALS_CLIENT_SECRET" -d grant_type=client_credentials $ANNALS_URL/oauth/token \\
  | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')

${calls.join('\n')}
# An application records a change, ...
curl -s -u "$ANNALS_CLIENT_ID:$ANNALS_CLIENT_SECRET" $ANNALS_RECORDER_URL/recorder/${tenant}/changes -H 'content-type: application/json' ${newline} -d '${JSON.stringify(sampleChange(now))}'

# ... and here it is
curl -sG $ANNALS_URL/changelog/${tenant}/changelogs -H "Authorization: Bearer $TOKEN" ${newline} -d size=1 -d context=true --data-urlencode 'q=entity:product entityId:desk-lamp'

# Changes as they are recorded, and all before them: server-sent events, until ^C
curl -sNG $ANNALS_URL/changelog/${tenant}/feed -H "Authorization: Bearer $TOKEN" -H 'accept: text/event-stream' -d after=start --data-urlencode 'q=entity:product'

# The same as NDJSON, from the database: ${tailSettings === '' ? 'with the settings of this service' : 'also while the service is restarted'}
${tailSettings}npx annals tail --tenant ${tenant} --after start --q 'entity:product'

# A webhook for products, and a receiver that checks its signatures: all changes that there are, and those that come, until ^C
SUBSCRIPTION=$(curl -s $ANNALS_URL/changelog/${tenant}/subscriptions -H "Authorization: Bearer $TOKEN" -H 'content-type: application/json' -d '${JSON.stringify(sampleSubscription)}')
WEBHOOK_SECRET=$(echo "$SUBSCRIPTION" | sed 's/.*"secret":"\\([^"]*\\)".*/\\1/') PORT=4000 npx node examples/webhook-receiver/receiver.ts
${openaiCalls(options)}`;
}

function openaiCalls({ baseUrl, tenant, openaiKey }: SampleCallOptions): string {
  if (openaiKey === undefined) return '';
  return `
# Any OpenAI client, with these two settings. The answers are made up
export OPENAI_BASE_URL=${baseUrl}/openai/${tenant}/v1
export OPENAI_API_KEY=${openaiKey}
curl -sN $OPENAI_BASE_URL/chat/completions -H "Authorization: Bearer $OPENAI_API_KEY" -H 'content-type: application/json' -d '${JSON.stringify(sampleCompletion)}'

# Any Anthropic client, such as Claude Code, with these two
export ANTHROPIC_BASE_URL=${baseUrl}/anthropic/${tenant}
export ANTHROPIC_AUTH_TOKEN=${openaiKey}

# What calls of models have cost, by model, and the budget
curl -s "$ANNALS_URL/usage/${tenant}/costs?by=model" -H "Authorization: Bearer $TOKEN" ${newline}
curl -s $ANNALS_URL/usage/${tenant}/budgets/monthly -H "Authorization: Bearer $TOKEN" ${newline}
`;
}

const sampleCompletion = {
  model: 'gpt-5.4-mini',
  messages: [{ role: 'user', content: 'Say hello' }],
  stream: true,
};

const sampleSubscription = {
  name: 'Products',
  q: 'entity:product',
  from: 'start',
  maxAge: 'P520W',
  target: { type: 'webhook', url: 'http://127.0.0.1:4000/' },
};

function sampleChange(now: number): object {
  const at = new Date(now).toISOString();
  const document = { name: 'Desk lamp', stock: 12 };
  return {
    id: `desk-lamp-${now}`,
    op: 'update',
    entity: 'product',
    entityId: 'desk-lamp',
    at,
    actor: 'Jane Doe',
    actorId: 'u-17',
    context: { reason: 'summer sale' },
    before: { ...document, price: 39.9 },
    after: { ...document, price: 34.9 },
  };
}

function questions({ order, around }: SampleCallOptions): { what: string; parameters: string }[] {
  const from = new Date(around - 86_400_000).toISOString();
  const to = new Date(around).toISOString();
  return [
    { what: 'The latest three changes of the last 30 days, and how many there are', parameters: '-d size=3' },
    asking('The life of one order', `entity:order entityId:${order}`),
    asking('What Jane Doe has changed', 'actor:Jane Doe type:update'),
    asking('All that one person did, whose name has changed', 'actorId:u-18'),
    asking('What support did for customers', 'onBehalfOf:exists'),
    asking('Who signed in from an address', 'entity:sign-in context.ip:203.0.113.*'),
    asking('Actors by the beginning of their name', 'actor:Jo*'),
    asking('Actors by regular expression', 'actor:~^J(an|oh)'),
    asking('Who lowered a price', 'entity:product change:elemMatch(path:price.amount is:lower)'),
    asking('Coupons and quotes that were made or deleted', 'entity:(coupon, quote) type:(create, delete)'),
    asking('Everything about one group', 'related:elemMatch(entity:group entityId:baristas)'),
    asking('Products on one day', `entity:product occurredAt:(>="${from}" AND <"${to}")`),
    asking(
      'Deletions by anybody, and what connected systems did to orders',
      'compoundLogicalQuery:((type:delete) OR (entity:order actor:external))',
    ),
    asking('A custom entity, the second page', 'entity:WARRANTY_CLAIM', '-d page=2 -d size=5'),
  ];
}

// The shell does not expand text in single quotes, which no query contains.
function asking(what: string, q: string, paging = '-d size=5'): { what: string; parameters: string } {
  return { what, parameters: `${paging} --data-urlencode 'q=${q}'` };
}
