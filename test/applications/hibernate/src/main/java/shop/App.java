package shop;

import jakarta.persistence.EntityManager;
import jakarta.persistence.EntityManagerFactory;
import jakarta.persistence.Persistence;
import java.util.HashMap;
import java.util.Map;

/** Creates the schema, writes and reads, then lets Hibernate validate and update the same schema. */
public class App {
    static EntityManagerFactory open(String how) {
        Map<String, Object> p = new HashMap<>();
        p.put("jakarta.persistence.jdbc.url", System.getenv("JDBC_URL"));
        p.put("jakarta.persistence.jdbc.user", System.getenv("PGUSER"));
        p.put("hibernate.hbm2ddl.auto", how);
        return Persistence.createEntityManagerFactory("shop", p);
    }

    public static void main(String[] args) {
        Order order = new Order();
        try (EntityManagerFactory f = open("create"); EntityManager m = f.createEntityManager()) {
            m.getTransaction().begin();
            m.persist(order);
            m.getTransaction().commit();
        }
        for (String how : new String[] {"validate", "update"}) {
            try (EntityManagerFactory f = open(how); EntityManager m = f.createEntityManager()) {
                Object id = m.createQuery("select o.id from Order o where o.token = :t")
                    .setParameter("t", order.token).getSingleResult();
                System.out.println(how + ": " + id.equals(order.id));
            }
        }
    }
}
