import { askForToken } from './ask-for-token.js';

// Set before the element is known: its script may come later.
document.querySelector('annals-history').getToken = askForToken;
try {
  globalThis.localStorage.length;
} catch (error) {
  document.documentElement.dataset.storage = error.name;
}
