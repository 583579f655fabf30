import { defineHistory } from './define-history.tsx';

// A server that renders a page has no elements: there the import does nothing.
if ('customElements' in globalThis) defineHistory();
