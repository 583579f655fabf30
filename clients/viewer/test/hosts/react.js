import { createElement, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { askForToken } from './ask-for-token.js';

function Account({ annals }) {
  const [drawn, setDrawn] = useState(1);
  return createElement(
    'main',
    null,
    createElement('button', { type: 'button', onClick: () => setDrawn(drawn + 1) }, `Drawn ${drawn}`),
    createElement('annals-history', {
      'base-url': annals,
      tenant: 'acme',
      range: 'all',
      csv: true,
      // Others each time that it is drawn, as people write it.
      getToken: () => askForToken(),
      messages: { entities: { order: 'Order' } },
    }),
  );
}

const place = document.querySelector('#app');
createRoot(place).render(createElement(Account, { annals: place.dataset.annals }));
