// Receives the webhooks of a subscription, checks that Annals has sent them, and handles each change once. Run it with:
// WEBHOOK_SECRET=whsec_… node examples/webhook-receiver/receiver.ts
import { createServer } from 'node:http';
import { verifyWebhook, WebhookError } from '@annals/client';

const keys = (process.env.WEBHOOK_SECRET ?? '').split(' ').filter((key) => key !== '');
const port = Number(process.env.PORT ?? 4000);
if (keys.length === 0) throw new Error('Set WEBHOOK_SECRET to the secret or the public key of the subscription.');

/** The ids that were handled. An application keeps them in its database, in the transaction that handles the change. */
const handled = new Set<string>();

createServer(async (request, response) => {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    // The bytes as they came: a parsed body that is written again has another signature.
    const { id, text } = await verifyWebhook(Buffer.concat(chunks), request.headers, keys);
    const { type, data } = JSON.parse(text);
    if (handled.has(id)) console.log('again', id);
    else if (type === 'test') console.log('test', data.message);
    else console.log(type, data.at, data.entity, data.entityId, data.actor, JSON.stringify(data.paths));
    handled.add(id);
    // Answer soon with 2xx. What takes long is done afterwards.
    response.writeHead(204).end();
  } catch (error) {
    if (!(error instanceof WebhookError)) throw error;
    console.log('refused:', error.message);
    response.writeHead(400).end();
  }
}).listen(port, () => console.log(`receiving at http://127.0.0.1:${port}/`));
