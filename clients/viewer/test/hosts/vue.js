import { createApp, h, ref } from 'vue';
import { askForToken } from './ask-for-token.js';

const place = document.querySelector('#app');
const drawn = ref(1);
createApp({
  render: () => [
    h('button', { type: 'button', onClick: () => (drawn.value += 1) }, `Drawn ${drawn.value}`),
    h('annals-history', {
      'base-url': place.dataset.annals,
      tenant: 'acme',
      range: 'all',
      csv: true,
      getToken: () => askForToken(),
      messages: { entities: { order: 'Order' } },
    }),
  ],
}).mount(place);
