import type { Payload } from 'payload';

/** One more call of an editor, another one at each turn. The same turns give the same calls. */
export async function work(payload: Payload, turn: number): Promise<void> {
  const pick = picker(turn);
  const article = await anyOf(payload, 'articles', pick);
  const order = await anyOf(payload, 'orders', pick);
  const data = { title: `Article ${turn}`, ...partsOf(pick) };
  switch (pick(8)) {
    case 0:
      await payload.create({
        collection: 'articles',
        data: { ...data, _status: pick(2) === 0 ? 'draft' : 'published' },
      });
      return;
    case 1:
      await payload.create({
        collection: 'orders',
        data: { number: `B-${turn}`, total: turn / 10, items: items(pick) },
      });
      return;
    case 2:
      if (order !== undefined) await payload.update({ collection: 'orders', id: order, data: { items: items(pick) } });
      return;
    case 3:
      if (order !== undefined) await payload.update({ collection: 'orders', id: order, data: { state: 'sent' } });
      return;
    case 4:
      if (order !== undefined && pick(3) === 0) await payload.delete({ collection: 'orders', id: order });
      return;
    case 5:
      if (article !== undefined && pick(4) === 0) await payload.delete({ collection: 'articles', id: article });
      return;
    case 6:
      if (article !== undefined) await payload.update({ collection: 'articles', id: article, draft: true, data });
      return;
    default: {
      const published = { ...data, _status: pick(4) === 0 ? 'draft' : 'published' } as const;
      if (article !== undefined) await payload.update({ collection: 'articles', id: article, data: published });
    }
  }
}

type Pick = (count: number) => number;

/** Fields with tables of their own, each now and then. */
function partsOf(pick: Pick): object {
  return {
    ...(pick(2) === 0 ? { price: pick(1000) / 8 } : {}),
    ...(pick(2) === 0 ? { authors: [1, 3].slice(pick(3)) } : {}),
    ...(pick(2) === 0 ? { channels: ['web', 'print', 'mail'].slice(pick(4)) } : {}),
    ...(pick(2) === 0 ? { sources: Array.from({ length: pick(5) }, (_none, index) => ({ label: `${index}` })) } : {}),
    ...(pick(2) === 0 ? { layout: blocks(pick) } : {}),
    ...(pick(3) === 0 ? { seo: { description: `Seen ${pick(100)}`, keywords: ['a', 'b'].slice(pick(3)) } } : {}),
  };
}

function blocks(pick: Pick): object[] {
  return Array.from({ length: pick(4) }, (_none, index) =>
    pick(2) === 0 ? { blockType: 'quote', text: `${index}` } : { blockType: 'figure', width: index },
  );
}

function items(pick: Pick): object[] {
  return Array.from({ length: pick(4) }, () => ({ count: pick(9) + 1 }));
}

async function anyOf(payload: Payload, collection: string, pick: Pick): Promise<number | undefined> {
  const { docs } = await payload.find({ collection, depth: 0, pagination: false, sort: 'id' });
  return docs.length === 0 ? undefined : Number(docs[pick(docs.length)]?.id);
}

/** Numbers that look random, below `count`. */
function picker(seed: number): Pick {
  let state = seed * 2_654_435_761;
  return (count) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
    return (state >>> 8) % count;
  };
}
