// Records changes of an application: POST /recorder/{tenant}/changes, on the port of the recorder. Run it with:
// node examples/record-changes.ts
// With curl: the call that "annals demo" prints.
import { actorId, and, entity, entityId } from '@annals/client/query';
import { demoClient } from './annals.ts';
import { setting } from './token.ts';

const annals = demoClient();
const recorder = annals.recorder({
  url: setting('ANNALS_RECORDER_URL'),
  onRejected: ({ line, reason }) => console.log(`cannot be recorded: ${reason}: ${line}`),
});

// What changes no document, such as a sign-in, is an event.
const jane = { actor: 'Jane Doe', actorId: 'u-17' };
await recorder.event({ entity: 'sign-in', ...jane, context: { ip: '203.0.113.17' } });

let lamp = { name: 'Desk lamp', price: 39.9, stock: 12 };
for (const change of [{ price: 34.9 }, { stock: 11 }, { stock: 10 }]) {
  const before = lamp;
  lamp = { ...lamp, ...change };
  // Resolves as soon as there is room for the next change. The recorder sends them together, in this order.
  await recorder.record({ op: 'update', entity: 'product', entityId: 'example-lamp', before, after: lamp, ...jane });
}
console.log(await recorder.close());

const { items } = await annals.history.list({ q: and(entity('product'), entityId('example-lamp')), size: 3 });
for (const { at, actor, actorId: id, paths } of items) console.log(at, actor, id, JSON.stringify(paths));
const signIns = await annals.history.list({ q: and(entity('sign-in'), actorId('u-17')), size: 3 });
console.log(`${signIns.totalElements} sign-ins of Jane in the last 30 days`);
