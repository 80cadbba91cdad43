/* What server-drawn pages need beyond the shell: little, and every page works without it. */
import './pages.css';
import './imports';
import './jobs';
import './keys';
import './policies';
import './sessions';
