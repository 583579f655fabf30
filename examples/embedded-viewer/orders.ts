import type { Annals } from '@annals/client';
import { and, entity, entityId } from '@annals/client/query';

export interface Customer {
  readonly id: string;
  readonly name: string;
}

/** Who can sign in to the shop. */
export const customers: readonly Customer[] = [
  { id: 'C-2001', name: 'Mara Lindqvist' },
  { id: 'C-2002', name: 'Jonas Weber' },
];

const [mara, jonas] = customers.map(({ id, name }) => ({ id, name }));

/** A change of an order or of a customer: so many days ago, at a time of that day, by somebody. */
type Step = readonly [
  daysAgo: number,
  time: string,
  actor: string,
  document: readonly [string, string],
  content: object,
];

const lamp = { product: 'Desk lamp Arc', quantity: 1, price: 89.9 };
const stool = { product: 'Stool Birch', quantity: 2, price: 64.5 };
const shelf = { product: 'Wall shelf', quantity: 3, price: 39 };

/** What happened, oldest first. The internal fields are for the shop's own people. */
const steps: readonly Step[] = [
  [
    41,
    '09:12',
    'Mara Lindqvist',
    ['customer', 'C-2001'],
    { name: 'Mara Lindqvist', email: 'mara@example.com', newsletter: false, internalRating: 'A' },
  ],
  [
    41,
    '09:20',
    'Mara Lindqvist',
    ['order', 'A-1042'],
    {
      customer: mara,
      status: 'OPEN',
      items: [lamp],
      total: 89.9,
      shippingAddress: { street: 'Storgatan 12', city: 'Lund' },
      internalNote: 'First order: check the card.',
    },
  ],
  [41, '09:21', 'system', ['order', 'A-1042'], { status: 'PAID', paidAt: at(-41, '09:21:07') }],
  [
    40,
    '14:05',
    'Ines (warehouse)',
    ['order', 'A-1042'],
    { status: 'SHIPPED', trackingNumber: 'SE4410029371', internalNote: 'Box 3, last one on stock.' },
  ],
  [38, '11:30', 'external', ['order', 'A-1042'], { status: 'DELIVERED' }],
  [
    19,
    '16:44',
    'Jonas Weber',
    ['customer', 'C-2002'],
    { name: 'Jonas Weber', email: 'jonas@example.com', newsletter: true, internalRating: 'C' },
  ],
  [
    19,
    '16:52',
    'Jonas Weber',
    ['order', 'A-1050'],
    {
      customer: jonas,
      status: 'OPEN',
      items: [stool],
      total: 129,
      shippingAddress: { street: 'Lindenweg 4', city: 'Jena' },
      internalNote: 'Paid late twice.',
    },
  ],
  [18, '08:15', 'system', ['order', 'A-1050'], { status: 'PAID' }],
  [17, '10:02', 'Ines (warehouse)', ['order', 'A-1050'], { status: 'SHIPPED', trackingNumber: 'DE0093312870' }],
  [9, '20:18', 'Mara Lindqvist', ['customer', 'C-2001'], { newsletter: true, phone: '+46 70 123 45 67' }],
  [
    6,
    '12:40',
    'Mara Lindqvist',
    ['order', 'A-1063'],
    {
      customer: mara,
      status: 'OPEN',
      items: [stool, shelf],
      total: 246,
      shippingAddress: { street: 'Storgatan 12', city: 'Lund' },
      deliveryNote: 'Please ring at the neighbour on the ground floor if nobody opens the door.',
      giftWrap: false,
    },
  ],
  [6, '12:41', 'system', ['order', 'A-1063'], { status: 'PAID', paidAt: at(-6, '12:41:52') }],
  [
    5,
    '09:33',
    'Tom (support)',
    ['order', 'A-1063'],
    {
      shippingAddress: { street: 'Nygatan 7', city: 'Malmö' },
      deliveryNote: 'Please ring at the neighbour on the second floor if nobody opens the door. The bell has no name.',
      internalNote: 'She called: moved house. Offered 10 %.',
    },
  ],
  [
    4,
    '15:20',
    'Tom (support)',
    ['order', 'A-1063'],
    { total: 221.4, discount: { reason: 'Late delivery', percent: 10 }, internalNote: 'Approved by Eva.' },
  ],
  [
    2,
    '07:58',
    'Jonas Weber',
    ['order', 'A-1071'],
    {
      customer: jonas,
      status: 'OPEN',
      items: [shelf],
      total: 117,
      shippingAddress: { street: 'Lindenweg 4', city: 'Jena' },
    },
  ],
  [
    1,
    '10:11',
    'Ines (warehouse)',
    ['order', 'A-1063'],
    { status: 'SHIPPED', trackingNumber: 'SE4410031118', estimatedDelivery: at(2, '00:00:00').slice(0, 10) },
  ],
  [1, '18:26', 'Jonas Weber', ['order', 'A-1071'], { status: 'CANCELLED', cancellation: 'Ordered the wrong size' }],
  [0, '00:05', 'Mara Lindqvist', ['order', 'A-1063'], { giftWrap: true }],
];

/** A time of the day that is so many days from today, in UTC. */
function at(days: number, time: string): string {
  return `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)}T${time}Z`;
}

/** Records what happened in the shop, unless it was recorded before. Resolves when the history shows it. */
export async function recordOrders(annals: Annals, recorderUrl: string): Promise<void> {
  const [, , , [type, id]] = steps.at(-1) ?? ([0, '', '', ['', '']] as const);
  const isThere = await annals.history.list({
    q: `${and(entity(type), entityId(id))} occurredAt:>="1970-01-01T00:00:00Z"`,
    size: 1,
  });
  if (isThere.totalElements > 0) return;
  const recorder = annals.recorder({ url: recorderUrl });
  const documents = new Map<string, object>();
  for (const [daysAgo, time, actor, [kind, number], content] of steps) {
    const before = documents.get(number);
    const after = { ...before, ...content };
    documents.set(number, after);
    await recorder.record({
      op: before === undefined ? 'insert' : 'update',
      entity: kind,
      entityId: number,
      at: at(-daysAgo, `${time}:00`),
      actor,
      ...('customer' in after ? { related: [{ entity: 'customer', entityId: (after.customer as Customer).id }] } : {}),
      ...(before === undefined ? {} : { before }),
      after,
    });
  }
  await recorder.close();
}
